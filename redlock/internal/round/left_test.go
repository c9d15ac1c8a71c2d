package round_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/property"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// freeIn is when a vote says that the master is free: a key is there through the whole of its last millisecond.
func freeIn(v round.Vote) time.Duration {
	if v.Left < 0 || v.Free {
		return v.Left
	}
	return v.Left + ms
}

// naiveFree is the first time at which a majority of a set is free, read plainly; -1 where waiting does not help.
func naiveFree(set quorum.Set, votes map[int]round.Vote) time.Duration {
	freeAt := func(at time.Duration) bool {
		n := 0
		for i := range set.All() {
			v, in := votes[i]
			switch {
			case !in, v.Kind == scripts.Granted, v.Kind == scripts.Stale, v.Kind == scripts.Missing:
				n++
			case v.Kind == scripts.Held && v.Left >= 0 && freeIn(v) <= at:
				n++
			}
		}
		return 2*n > set.Len()
	}
	if freeAt(-1) {
		return -1 // it is no time that is to be waited for
	}
	best := time.Duration(-1)
	for i := range set.All() {
		if v := votes[i]; v.Kind == scripts.Held && v.Left >= 0 && freeAt(freeIn(v)) && (best < 0 || freeIn(v) < best) {
			best = freeIn(v)
		}
	}
	return best
}

// A quorum may be free when enough of the refused times are over, in each of the sets that decide.
func TestLeftIsTheFirstTimeWithAFreeQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 7)
		kinds := []scripts.Kind{
			scripts.Held, scripts.Held, scripts.Held, scripts.Granted, scripts.Failed, scripts.Abstained, scripts.Refused,
			scripts.Stale, scripts.Missing,
		}
		property.Check(t, func(t *testing.T, r *rand.Rand) {
			config := *b.Voters.View().Config
			config.Rule = quorum.Rule{Old: quorum.First(1 + r.IntN(7))}
			if r.IntN(3) == 0 {
				config.Rule.Next = quorum.Set(1 + r.IntN(127))
			}
			view := *b.Voters.View()
			view.Config = &config
			rd, votes := b.Sender.New(&view, "lock", nil), map[int]round.Vote{}
			for i := range config.Rule.All().All() {
				if r.IntN(5) > 0 {
					v := kind(kinds[r.IntN(len(kinds))])
					v.Left, v.Free = time.Duration(r.IntN(10)-1)*ms, r.IntN(4) == 0
					votes[i] = v
					rd.Cast(i, v)
				}
			}
			want := time.Duration(-1)
			for _, set := range config.Rule.Sets() {
				want = max(want, naiveFree(set, votes))
			}
			if got := rd.Failure(round.ErrHeld, nil).Left; got != want {
				t.Errorf("%+v, %v: %v, want %v", config.Rule, votes, got, want)
			}
		})
	})
}

// A release whose context has ended is still confirmed, by masters that are near; one that hangs is not waited for.
func TestConfirmedAsTable(t *testing.T) {
	for _, c := range []struct {
		name       string
		after      time.Duration // when two of three votes come
		kind       scripts.Kind
		left       time.Duration
		cancelled  bool
		want       error
		wantWithin time.Duration
	}{
		{"in time", ms, scripts.Granted, time.Second, false, nil, ms},
		{"cancelled and near", ms, scripts.Granted, time.Second, true, nil, ms},
		{"cancelled and far", 11 * ms, scripts.Granted, time.Second, true, context.Canceled, 10 * ms},
		{"longer than the validity", 101 * ms, scripts.Granted, 100 * ms, false, round.ErrNoQuorum, 100 * ms},
		{"nothing is left", 11 * ms, scripts.Granted, 0, false, round.ErrNoQuorum, 10 * ms},
		{"refused", ms, scripts.Failed, time.Second, false, round.ErrNoQuorum, ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t, 3)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancelled {
					cancel()
				}
				rd, began := b.Sender.New(b.Voters.View(), "unlock", nil), time.Now()
				go func() {
					<-time.After(c.after)
					rd.Cast(0, kind(c.kind))
					rd.Cast(1, kind(c.kind))
				}()
				err := rd.Confirmed(ctx, c.left)
				if took := time.Since(began); took != c.wantWithin || (err == nil) != (c.want == nil) || !errors.Is(err, c.want) {
					t.Errorf("after %v: %v", took, err)
				}
				<-rd.Done()
			})
		})
	}
}
