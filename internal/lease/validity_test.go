package lease

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/property"
	"github.com/redlock-go/redlock/internal/scripts"
)

const (
	minTTL = 10 * time.Millisecond
	maxTTL = 24 * time.Hour
)

// randomValidity returns a validity with a TTL that callers may use.
func randomValidity(r *rand.Rand) validity {
	ttl := minTTL + time.Duration(r.Int64N(int64(maxTTL-minTTL)))
	if r.IntN(2) == 0 {
		ttl = minTTL + time.Duration(r.Int64N(int64(time.Minute)))
	}
	return validity{start: clock.At(r.Int64N(1<<60), r.Int64N(1<<60)), ttl: ttl}
}

// H11: the remaining validity is TTL - elapsed - drift. It is at most one nanosecond less than the exact result, and
// never more.
func TestValidityIsExact(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		v := randomValidity(r)
		elapsed := time.Duration(r.Int64N(int64(2 * v.ttl)))
		exact := big.NewRat(99*int64(v.ttl), 100)
		exact.Sub(exact, big.NewRat(int64(elapsed+2*time.Millisecond), 1))
		got := v.left(v.start.Add(elapsed))
		less, _ := exact.Sub(exact, big.NewRat(int64(got), 1)).Float64()
		if less < 0 || less >= 1 {
			t.Errorf("%+v after %v: %d ns are left, %v off", v, elapsed, got, less)
		}
	})
}

// H61: after any freezes, each counted by one clock or by both, the remaining validity is the TTL minus the drift and
// the larger of the two times that have passed on the clocks. The maximum hold uses the same elapsed time.
func TestSeveralFreezesAddUpToTheLargerClock(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		v := randomValidity(r)
		l := &Lease{validity: v, state: live}
		l.ownership.began = v.start
		if r.IntN(2) == 0 {
			l.ownership.terms.MaxHold = 1 + time.Duration(r.Int64N(int64(v.ttl)))
		}
		boot, wall := v.start.Steady(), v.start.Steady()+v.start.Skew()
		for range 1 + r.IntN(5) {
			step := r.Int64N(int64(v.ttl)/2 + 1)
			switch r.IntN(3) {
			case 0:
				boot += step // the wall clock was set back by as much
			case 1:
				wall += step // timers and the boot clock stopped
			default:
				boot, wall = boot+step, wall+step
			}
		}
		now := clock.At(boot, wall)
		elapsed := time.Duration(max(boot-v.start.Steady(), wall-v.start.Steady()-v.start.Skew()))
		want := v.ttl - Drift(v.ttl) - elapsed
		valid := want
		if m := l.ownership.terms.MaxHold; m > 0 {
			want = min(want, m-elapsed)
		}
		if got := l.leftLocked(now); got != want {
			t.Errorf("%v of validity are left, want %v", got, want)
		}
		why, cause := l.expiredLocked(now), error(nil)
		if why != nil {
			cause = why.err
		}
		switch {
		case valid <= 0 && (!errors.Is(cause, ErrLost) || errors.Is(cause, ErrMaxHold)),
			valid > 0 && want <= 0 && !errors.Is(cause, ErrMaxHold), want > 0 && cause != nil:
			t.Errorf("%v of validity, %v in all are left: the lock has ended with %v", valid, want, cause)
		}
	})
}

// H15: an extension is due when a third of the TTL has passed since the start of the last extension.
func TestExtensionIsDueAfterThirdOfTTL(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		v := randomValidity(r)
		elapsed := time.Duration(r.Int64N(int64(v.ttl)))
		if got, want := v.extendIn(v.ttl, v.start.Add(elapsed)), v.ttl/3-elapsed; got != want {
			t.Errorf("%+v after %v: due in %v, want %v", v, elapsed, got, want)
		}
	})
}

// H13: the masters keep a lock at least as long as its TTL, and its holder relies on at most the TTL.
func TestMastersKeepLockLongerThanValidity(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		v := randomValidity(r)
		kept := time.Duration(scripts.Millis(v.ttl)) * time.Millisecond
		if kept < v.ttl || kept >= v.ttl+time.Millisecond {
			t.Errorf("a TTL of %v is kept for %v", v.ttl, kept)
		}
		if left := v.left(v.start); left > v.ttl || left > kept {
			t.Errorf("a TTL of %v gives a validity of %v", v.ttl, left)
		}
	})
}

// H23: the pauses before retries of a failed extension are short, and leave time for another retry before the
// validity ends. They are at least a millisecond, even after its end, so that late retries do not loop without pauses.
func TestExtensionRetriesFitIntoTheValidity(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		v := randomValidity(r)
		now := v.start.Add(time.Duration(r.Int64N(int64(2 * v.ttl))))
		rest, pause := v.left(now), v.retryIn(now)
		switch {
		case pause < time.Millisecond:
			t.Errorf("%+v: a retry after %v, want at least a millisecond", v, pause)
		case pause > max(rest/3, time.Millisecond):
			t.Errorf("%+v: a retry after %v of the %v that are left", v, pause, rest)
		case pause > max(v.ttl*16/100, time.Millisecond):
			t.Errorf("%+v: a retry after %v, more than a sixth of the TTL", v, pause)
		}
	})
}
