package round_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
	"github.com/redlock-go/redlock/redlock/internal/testbed"
)

const ms = time.Millisecond

// newBed makes masters that vote, inside the bubble in which the test runs.
func newBed(t *testing.T, n int) *testbed.Bed {
	t.Helper()
	b := testbed.New(t, n)
	b.Run()
	synctest.Wait()
	return b
}

func kind(k scripts.Kind) round.Vote { return round.Vote{Vote: scripts.Vote{Kind: k}} }

// A book is what a Booker was told.
type book struct {
	mu      sync.Mutex
	masters []int
	decides []int
	last    []int
	open    bool // the round was decided for others already when the deciding vote was booked
	done    func() <-chan struct{}
}

// Booked implements round.Booker.
func (b *book) Booked(_ *round.Round, i int, _ *round.Vote, decides, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.masters = append(b.masters, i)
	if decides {
		b.decides = append(b.decides, i)
		select {
		case <-b.done():
			b.open = true
		default:
		}
	}
	if last {
		b.last = append(b.last, i)
	}
}

// Each vote is booked once. One decides, before anybody who waits hears of it; one is the last.
func TestEachVoteIsBookedAndOneDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 5)
		r := rand.New(rand.NewPCG(1, 2))
		for range 500 {
			bk := &book{}
			rd := b.Sender.New(b.Voters.View(), "lock", bk)
			bk.done = rd.Done
			var wg sync.WaitGroup
			for i := range 5 {
				k := []scripts.Kind{scripts.Granted, scripts.Held, scripts.Granted}[r.IntN(3)]
				wg.Go(func() { rd.Cast(i, kind(k)) })
			}
			<-rd.Done()
			if !rd.Complete(t.Context()) {
				t.Fatal("it is not complete")
			}
			wg.Wait()
			if len(bk.masters) != 5 || len(bk.decides) != 1 || len(bk.last) != 1 || bk.open {
				t.Fatalf("booked %v, decided by %v, ended by %v", bk.masters, bk.decides, bk.last)
			}
			tally := rd.Tally()
			if now := rd.Tally(); rd.Verdict() != tally.Verdict() || now.In() != rd.Asked() {
				t.Fatalf("decided as %d, counted as %d", rd.Verdict(), tally.Verdict())
			}
		}
	})
}

// Complete waits for the last vote, and no longer than its context.
func TestCompleteWaitsForTheLastVote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		rd := b.Sender.New(b.Voters.View(), "lock", nil)
		rd.Cast(0, kind(scripts.Granted))
		rd.Cast(1, kind(scripts.Granted))
		ctx, cancel := context.WithTimeout(t.Context(), ms)
		defer cancel()
		if now := rd.Tally(); rd.Complete(ctx) || rd.Verdict() != quorum.Won || now.In() != quorum.First(2) {
			t.Error("it is complete without the third")
		}
		if v := rd.Vote(2); !v.Unsure() {
			t.Error("a vote that has not come is sure to have had no effect")
		}
		rd.Cast(2, kind(scripts.Held))
		if !rd.Complete(t.Context()) || rd.Vote(2).Kind != scripts.Held {
			t.Error("it is not complete")
		}
	})
}

// What may have had an effect: a call without an answer, and one that was answered by an error.
func TestUnsureAsTable(t *testing.T) {
	for _, c := range []struct {
		vote round.Vote
		want bool
	}{
		{kind(scripts.Granted), false},
		{kind(scripts.Held), false},
		{round.Vote{Err: &pool.Error{Err: pool.ErrDown}}, false},
		{round.Vote{Err: &pool.Error{Err: io.EOF, Unknown: true}}, true},
		{round.Vote{Err: errors.New("not sent")}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, 1)
			rd := b.Sender.New(b.Voters.View(), "lock", nil)
			rd.Cast(0, c.vote)
			if v := rd.Vote(0); v.Unsure() != c.want {
				t.Errorf("%+v: unsure is %v", c.vote, !c.want)
			}
		})
	}
}

// H78: each master that has not answered is named, and for how long.
func TestMastersThatDoNotAnswerAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 5)
		rd := b.Sender.New(b.Voters.View(), "lock", nil)
		rd.Cast(0, kind(scripts.Granted))
		rd.Cast(1, round.Vote{Err: &pool.Error{Addr: "x", Op: "lock", Err: io.EOF}})
		<-time.After(450 * ms)
		f := rd.Failure(nil, context.DeadlineExceeded)
		if len(f.Masters) != 4 || f.Granted != 1 || f.Quorum != 3 || f.N != 5 {
			t.Fatalf("%+v", f)
		}
		for k, i := range []int{2, 3, 4} {
			text := f.Masters[k+1].Error()
			if !strings.Contains(text, b.Pool.Addr(i)) || !strings.Contains(text, "not answered for 450ms") {
				t.Errorf("master %d: %s", i, text)
			}
		}
		if !errors.Is(f, context.DeadlineExceeded) || !errors.Is(f, io.EOF) || errors.Is(f, round.ErrHeld) {
			t.Errorf("%v", f)
		}
	})
}

// Where nothing was sent, each master that does not vote is named.
func TestMastersThatDoNotVoteAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		view := *b.Voters.View()
		view.Voting = quorum.One(2)
		view.Masters = append([]admission.State(nil), view.Masters...)
		view.Masters[0].Err = admission.ErrQuarantine
		f := b.Sender.NoQuorum(&view, "lock", context.Canceled)
		if len(f.Masters) != 2 || !errors.Is(f, admission.ErrQuarantine) || !errors.Is(f, context.Canceled) ||
			!strings.Contains(f.Masters[1].Error(), b.Pool.Addr(1)) || f.Left >= 0 {
			t.Errorf("%+v", f)
		}
	})
}

// H05, H56: what is wrong with each vote is told in words; a yes, and another holder, are not wrong.
func TestComplaintsAsTable(t *testing.T) {
	old := scripts.Record{Identity: "a/b/c", Masters: "a", Epoch: 4, Raised: 1, Longest: 30 * time.Second, Admitted: true}.String()
	short := scripts.Record{Identity: "a/b/c", Masters: "a", Longest: 5 * time.Second, Admitted: true}.String()
	record := func(k scripts.Kind, text string) round.Vote {
		return round.Vote{Vote: scripts.Vote{Kind: k, Record: text}}
	}
	for _, c := range []struct {
		vote round.Vote
		is   error
		says string
	}{
		{kind(scripts.Granted), nil, ""},
		{kind(scripts.Held), nil, ""},
		{kind(scripts.Missing), nil, ""},
		{record(scripts.Abstained, ""), admission.ErrQuarantine, "no admission record"},
		{record(scripts.Abstained, "x"), admission.ErrQuarantine, "another than was known"},
		{record(scripts.Refused, short), round.ErrGuardTime, "5s"},
		{record(scripts.Refused, old), admission.ErrOldMasters, "epoch 4"},
		{record(scripts.Refused, "?"), round.ErrGuardTime, `"?"`},
		{round.Vote{Vote: scripts.Vote{Kind: scripts.Stale, Fence: 7, Time: 9}}, nil, "stale; its fence is 7, its time 9"},
		{round.Vote{Vote: scripts.Vote{Kind: scripts.Ahead, Fence: 7, Time: 9}}, nil, "ahead"},
		{round.Vote{Err: io.EOF}, io.EOF, "EOF"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, 1)
			rd := b.Sender.New(b.Voters.View(), "lock", nil)
			rd.Cast(0, c.vote)
			f := rd.Failure(round.ErrNoQuorum, nil)
			switch {
			case c.says == "" && len(f.Masters) != 0:
				t.Errorf("%v: %v", c.vote.Kind, f.Masters)
			case c.says == "":
			case len(f.Masters) != 1 || c.is != nil && !errors.Is(f, c.is) || !strings.Contains(f.Masters[0].Error(), c.says) ||
				!strings.Contains(f.Masters[0].Error(), b.Pool.Addr(0)):
				t.Errorf("%v: %v", c.vote, f.Masters)
			}
		})
	}
}

// H70: a quorum that refuses the TTL for its length, whether it was asked or its record is known. Refusals for an old
// epoch are none of these.
func TestTooLongAsTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		view := b.Voters.View()
		old := scripts.Record{Identity: "a/b/c", Masters: "a", Epoch: 4, Longest: 30 * time.Second, Admitted: true}.String()
		known, no := b.Sender.Refusal(view, 0, 31*time.Second, round.NeedsVote)
		if !no || !errors.Is(known.Err, round.ErrGuardTime) || !strings.Contains(known.Err.Error(), "redlock guard") {
			t.Fatalf("a TTL that is known to be too long: %+v", known)
		}
		said := round.Vote{Vote: scripts.Vote{Kind: scripts.Refused, Record: "v2"}}
		epoch := round.Vote{Vote: scripts.Vote{Kind: scripts.Refused, Record: old}}
		for _, c := range []struct {
			votes []round.Vote
			want  bool
		}{
			{[]round.Vote{known, known}, true},
			{[]round.Vote{known, said}, true},
			{[]round.Vote{known, kind(scripts.Held)}, false},
			{[]round.Vote{epoch, epoch, epoch}, false},
			{[]round.Vote{epoch, known}, false},
		} {
			rd := b.Sender.New(view, "lock", nil)
			for i, v := range c.votes {
				rd.Cast(i, v)
			}
			if got := rd.TooLong(); got != c.want {
				t.Errorf("%v: %v", c.votes, got)
			}
		}
	})
}

// A master need not be asked if it is down, refuses the TTL, or is not as the call needs it.
func TestRefusalAsTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		voting := admission.State{Phase: admission.Voting, Session: 1, Longest: time.Second}
		unread := admission.State{Phase: admission.Connecting, Session: 1, Stamp: admission.Unread}
		for _, c := range []struct {
			state admission.State
			ttl   time.Duration
			need  round.Need
			want  scripts.Kind
			no    bool
		}{
			{voting, time.Second, round.NeedsVote, 0, false},
			{voting, time.Second + 1, round.NeedsConnection, scripts.Refused, true},
			{admission.State{Phase: admission.Voting, Session: 1}, time.Hour, round.NeedsVote, 0, false},
			{admission.State{Phase: admission.InQuarantine, Session: 1}, time.Second, round.NeedsVote, scripts.Abstained, true},
			{admission.State{Phase: admission.InQuarantine, Session: 1}, time.Second, round.NeedsRecord, 0, false},
			{admission.State{Phase: admission.Blocked, Session: 1}, time.Second, round.NeedsRecord, 0, false},
			{unread, time.Second, round.NeedsRecord, scripts.Abstained, true},
			{unread, time.Second, round.NeedsConnection, 0, false},
			{admission.State{Phase: admission.Down}, time.Second, round.NeedsConnection, scripts.Failed, true},
			{admission.State{Phase: admission.Connecting}, time.Second, round.NeedsConnection, scripts.Failed, true},
		} {
			view := *b.Voters.View()
			view.Masters = []admission.State{c.state}
			v, no := b.Sender.Refusal(&view, 0, c.ttl, c.need)
			if no != c.no || v.Kind != c.want || no != (v.Err != nil) {
				t.Errorf("%+v, %v: %v, %+v", c.state, c.ttl, no, v)
			}
		}
	})
}

// H05, H103: a lost round is held only if one lease has a majority, or a waiter the first place on one. Votes that are
// split are undecided, and masters that cannot vote leave no quorum.
func TestDecisionOfALostRound(t *testing.T) {
	heldBy := func(id string) scripts.Vote { return scripts.Vote{Kind: scripts.Held, Holder: id, Token: 7} }
	free := scripts.Vote{Kind: scripts.Held, Free: true}
	failed, granted := scripts.Vote{}, scripts.Vote{Kind: scripts.Granted}
	stale, ahead := scripts.Vote{Kind: scripts.Stale}, scripts.Vote{Kind: scripts.Ahead}
	reader := func(n uint64) scripts.Vote { return heldBy(scripts.ShareID("me", n, scripts.Reader, 7, "")) }
	a, b, c := heldBy("a:1:"), heldBy("b:1:"), heldBy("c:1:")
	synctest.Test(t, func(t *testing.T) {
		bed := newBed(t, 5)
		for _, x := range []struct {
			votes  []scripts.Vote
			off    quorum.Set // masters whose clocks are off
			next   quorum.Set // of a joint configuration, where the first three are the old set
			want   error
			holder string
			leads  bool
		}{
			{[]scripts.Vote{a, a, a}, 0, 0, round.ErrHeld, "a:1:", false},
			{[]scripts.Vote{b, a, c, a, a}, 0, 0, round.ErrHeld, "a:1:", false},
			{[]scripts.Vote{a, a, a, failed, failed}, 0, 0, round.ErrHeld, "a:1:", false},
			{[]scripts.Vote{a, a, b, granted, granted}, 0, 0, round.ErrUndecided, "", false},
			{[]scripts.Vote{c, c, b, granted, granted}, 0, 0, round.ErrUndecided, "", true},
			{[]scripts.Vote{a, b, c, granted, granted}, 0, 0, round.ErrUndecided, "", true},
			{[]scripts.Vote{a, a, b, c, granted}, 0, 0, round.ErrUndecided, "", false},
			{[]scripts.Vote{a, a, b, b, c}, 0, 0, round.ErrUndecided, "", false},
			{[]scripts.Vote{a, a, failed, failed, granted}, 0, 0, round.ErrUndecided, "", false},
			{[]scripts.Vote{a, a, failed, failed, failed}, 0, 0, round.ErrNoQuorum, "", false},
			{[]scripts.Vote{free, free, free}, 0, 0, round.ErrHeld, "", false},
			{[]scripts.Vote{a, free, c, granted, granted}, 0, 0, round.ErrUndecided, "", false},
			{[]scripts.Vote{reader(1), reader(2), reader(3)}, 0, 0, round.ErrHeld, "me:1r7:", false},
			{[]scripts.Vote{stale, stale, ahead}, 0, 0, round.ErrUndecided, "", false},
			{[]scripts.Vote{granted, granted, stale, ahead, ahead}, 0b11100, 0, round.ErrNoQuorum, "", true},
			{[]scripts.Vote{a, a, stale, stale, stale}, 0b11100, 0, round.ErrNoQuorum, "", false},
			{[]scripts.Vote{a, a, granted, granted, granted}, 0, 0b11000, round.ErrHeld, "a:1:", true},
			{[]scripts.Vote{a, a, a, failed, failed}, 0, 0b11000, round.ErrNoQuorum, "", false},
		} {
			view := *bed.Voters.View()
			view.Masters = slices.Clone(view.Masters)
			for i := range x.off.All() {
				view.Masters[i].ClockOff = true
			}
			rd := bed.Sender.New(&view, "lock", nil)
			rd.Grant = "b:2:"
			if x.next != 0 {
				rd.Judge(quorum.Rule{Old: 0b111, Next: x.next}, 0)
			}
			for i, v := range x.votes {
				rd.Cast(i, round.Vote{Vote: v})
			}
			got := rd.Decision()
			f := rd.Failure(got, nil)
			undecided := errors.Is(x.want, round.ErrUndecided)
			known := undecided || errors.Is(x.want, round.ErrHeld)
			if !errors.Is(got, x.want) || errors.Is(got, round.ErrUndecided) != undecided ||
				known && f.Holder != x.holder || rd.Leads() != x.leads {
				t.Errorf("%+v: %v by %q, leads: %v", x.votes, got, f.Holder, rd.Leads())
			}
		}
	})
}
