package redlock

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
)

func randomLease(r *rand.Rand) lease {
	ttl := MinTTL + time.Duration(r.Int64N(int64(MaxTTL-MinTTL)))
	if r.IntN(2) == 0 {
		ttl = MinTTL + time.Duration(r.Int64N(int64(time.Minute)))
	}
	drift := clock.DefaultDrift
	if r.IntN(2) == 0 {
		drift = clock.Drift{Factor: r.Float64() / 2, Constant: time.Duration(r.Int64N(int64(5 * time.Millisecond)))}
	}
	start := clock.At(r.Int64N(1<<60), r.Int64N(1<<60))
	return lease{start: start, ttl: ttl, drift: drift}
}

// H11: the 2 ms belong to the drift, and the drift is taken off.
func TestValidityAsTable(t *testing.T) {
	start := clock.At(0, int64(1_700_000_000*time.Second))
	for _, c := range []struct {
		ttl, elapsed, want time.Duration
	}{
		{10 * time.Second, 0, 9898 * time.Millisecond},
		{10 * time.Second, 3 * time.Millisecond, 9895 * time.Millisecond},
		{10 * time.Second, 9898 * time.Millisecond, 0},
		{10 * time.Second, 10 * time.Second, -102 * time.Millisecond},
		{MinTTL, 0, 7900 * time.Microsecond},
		{30 * time.Second, time.Hour, 30*time.Second - time.Hour - 302*time.Millisecond},
	} {
		l := lease{start: start, ttl: c.ttl, drift: clock.DefaultDrift}
		if got := l.left(start.Add(c.elapsed)); got != c.want {
			t.Errorf("TTL %v after %v: %v left, want %v", c.ttl, c.elapsed, got, c.want)
		}
	}
}

// H11: validity = TTL - elapsed - drift, against exact arithmetic. Nothing but the rounding of one nanosecond lies
// between the two, and it lies on the safe side.
func TestValidityIsExact(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		l := randomLease(r)
		elapsed := time.Duration(r.Int64N(int64(2 * l.ttl)))
		exact := new(big.Float).SetPrec(200).SetFloat64(l.drift.Factor)
		exact.Mul(exact, new(big.Float).SetInt64(int64(l.ttl)))
		exact.Add(exact, new(big.Float).SetInt64(int64(l.drift.Constant)))
		exact.Sub(new(big.Float).SetInt64(int64(l.ttl-elapsed)), exact)
		got := l.left(l.start.Add(elapsed))
		less, _ := exact.Sub(exact, new(big.Float).SetInt64(int64(got))).Float64()
		if less < -0.02 || less > 1.02 { // a fiftieth: the last place of a product over a day
			t.Errorf("%+v after %v: %d ns are left, %v off", l, elapsed, got, less)
		}
	})
}

// H14: time that only one of the clocks has seen, in a suspension or a freeze, is off the validity; a wall clock set
// back does not give it back.
func TestValidityCountsTheLargerElapsedTime(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		l := randomLease(r)
		boot, wall := r.Int64N(int64(2*l.ttl)), r.Int64N(int64(4*l.ttl))-int64(2*l.ttl)
		now := clock.At(l.start.Steady()+boot, l.start.Steady()+l.start.Skew()+wall)
		want := l.ttl - time.Duration(max(boot, wall)) - l.drift.Of(l.ttl)
		if got := l.left(now); got != want {
			t.Errorf("%+v, boot clock %d on, wall clock %d on: %v left, want %v", l, boot, wall, got, want)
		}
	})
}

func TestLeaseEndIsWhereNothingIsLeft(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		l := randomLease(r)
		if left := l.left(l.end()); left != 0 {
			t.Errorf("%+v: at its end %v are left", l, left)
		}
		d := 1 + time.Duration(r.Int64N(int64(l.ttl)))
		if l.left(l.end().Add(d)) != -d || l.left(l.end().Add(-d)) != d {
			t.Errorf("%+v: the validity does not run off evenly around its end", l)
		}
		if due := l.extendAt(l.ttl).Sub(l.start); due != l.ttl/3 {
			t.Errorf("%+v: an extension is due after %v", l, due)
		}
	})
}

// H13: the masters keep a lock at least as long as was asked for, and its holder relies on no more than that.
func TestMastersKeepALockLongerThanItsHolderReliesOnIt(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		l := randomLease(r)
		call := scripts.NewFleet("p", time.Second, time.Hour, 0).AcquireCall(
			scripts.NewHold(scripts.Prefix("p").Keys("n"), "id", ""), scripts.ModeAcquire, l.ttl, 1, 1, 1)
		kept := time.Duration(call.Args[7].(int64)) * time.Millisecond
		if kept < l.ttl || kept >= l.ttl+time.Millisecond {
			t.Errorf("a TTL of %v is kept for %v", l.ttl, kept)
		}
		if valid := l.left(l.start); valid > l.ttl || valid > kept {
			t.Errorf("a TTL of %v gives a validity of %v", l.ttl, valid)
		}
	})
}

// H23: retries of a failed extension are short, grow, are capped, and leave room for another before the end.
func TestExtensionRetriesFitIntoTheValidity(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		l := randomLease(r)
		left := l.left(l.start)
		if left <= 3*time.Millisecond {
			return
		}
		elapsed := time.Duration(r.Int64N(int64(left - 3*time.Millisecond)))
		now := l.start.Add(elapsed)
		rest, last := l.left(now), time.Duration(0)
		for n := 1; n <= 100; n++ {
			pause := l.retryAfter(n, now)
			switch {
			case pause < time.Millisecond:
				t.Errorf("%+v: retry %d after %v is a flood", l, n, pause)
			case pause < last:
				t.Errorf("%+v: retry %d after %v comes sooner than the one before, %v", l, n, pause, last)
			case pause > max(rest/3, time.Millisecond):
				t.Errorf("%+v: retry %d after %v of the %v that are left", l, n, pause, rest)
			case pause > max(l.ttl*16/100, time.Millisecond):
				t.Errorf("%+v: retry %d after %v, more than a sixth of the TTL", l, n, pause)
			}
			last = pause
		}
	})
}

// At the very end the pause is its least value, never zero: a schedule that is late must not spin.
func TestExtensionRetryNearTheEndIsAMillisecond(t *testing.T) {
	l := lease{start: clock.At(1, 1), ttl: time.Second, drift: clock.DefaultDrift}
	for _, late := range []time.Duration{-time.Millisecond, 0, time.Hour} {
		if got := l.retryAfter(1, l.end().Add(late)); got != time.Millisecond {
			t.Errorf("%v after the end: %v", late, got)
		}
	}
}
