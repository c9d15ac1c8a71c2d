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

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/testbed"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

const ms = time.Millisecond

// newBed returns a Bed with n masters that vote. The test must run in a bubble.
func newBed(t *testing.T, n int) *testbed.Bed {
	t.Helper()
	b := testbed.New(t, n)
	b.Run()
	synctest.Wait()
	return b
}

func voteOf(o quorum.Outcome) round.Vote { return round.Vote{Vote: scripts.Vote{Outcome: o}} }

// A voteLog records the calls of a VoteObserver.
type voteLog struct {
	mu      sync.Mutex
	masters []int
	decides []int
	last    []int
	early   bool // Done was already closed when the deciding vote was reported
	done    func() <-chan struct{}
}

// OnVote implements round.VoteObserver.
func (b *voteLog) OnVote(_ *round.Round, i int, _ *round.Vote, decides, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.masters = append(b.masters, i)
	if decides {
		b.decides = append(b.decides, i)
		select {
		case <-b.done():
			b.early = true
		default:
		}
	}
	if last {
		b.last = append(b.last, i)
	}
}

// Each vote is reported to the observer once. Exactly one vote is reported as deciding, before any waiting caller is
// woken, and exactly one as the last.
func TestEachVoteIsReportedAndOneDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 5)
		r := rand.New(rand.NewPCG(1, 2))
		for range 500 {
			bk := &voteLog{}
			rd := b.Sender.New(b.Monitor.View(), "lock", "", bk)
			bk.done = rd.Done
			var wg sync.WaitGroup
			for i := range 5 {
				o := []quorum.Outcome{quorum.Granted, quorum.Held, quorum.Granted}[r.IntN(3)]
				wg.Go(func() { rd.Record(i, voteOf(o)) })
			}
			<-rd.Done()
			if !rd.Complete(t.Context()) {
				t.Fatal("Complete returned false, want true")
			}
			wg.Wait()
			if len(bk.masters) != 5 || len(bk.decides) != 1 || len(bk.last) != 1 || bk.early {
				t.Fatalf("the votes %v were reported, as deciding %v, as last %v", bk.masters, bk.decides, bk.last)
			}
			tally := rd.Tally()
			if now := rd.Tally(); rd.Verdict() != tally.Verdict() || now.In() != rd.Asked() {
				t.Fatalf("the verdict is %d, and that of the tally is %d", rd.Verdict(), tally.Verdict())
			}
		}
	})
}

// Complete waits for the last vote, but no longer than its context.
func TestCompleteWaitsForTheLastVote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		rd := b.Sender.New(b.Monitor.View(), "lock", "", nil)
		rd.Record(0, voteOf(quorum.Granted))
		rd.Record(1, voteOf(quorum.Granted))
		ctx, cancel := context.WithTimeout(t.Context(), ms)
		defer cancel()
		if now := rd.Tally(); rd.Complete(ctx) || rd.Verdict() != quorum.Won || now.In() != quorum.First(2) {
			t.Error("Complete returned true without the third vote")
		}
		if v := rd.Vote(2); !v.Unsure() {
			t.Error("Unsure is false for a vote that has not arrived")
		}
		rd.Record(2, voteOf(quorum.Held))
		if !rd.Complete(t.Context()) || rd.Vote(2).Outcome != quorum.Held {
			t.Error("Complete returned false, want true")
		}
	})
}

// Unsure reports whether a call may have had an effect on the master: it is true for a lost reply, and false for a
// call that was not sent.
func TestUnsureAsTable(t *testing.T) {
	for _, c := range []struct {
		vote round.Vote
		want bool
	}{
		{voteOf(quorum.Granted), false},
		{voteOf(quorum.Held), false},
		{round.Vote{Err: &transport.Error{Err: fault.ErrDown}}, false},
		{round.Vote{Err: &transport.Error{Err: io.EOF, Unknown: true}}, true},
		{round.Vote{Err: errors.New("not sent")}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, 1)
			rd := b.Sender.New(b.Monitor.View(), "lock", "", nil)
			rd.Record(0, c.vote)
			if v := rd.Vote(0); v.Unsure() != c.want {
				t.Errorf("%+v: Unsure is %v", c.vote, !c.want)
			}
		})
	}
}

// If nothing was sent, the error of NoQuorum names each master that does not vote.
func TestMastersThatDoNotVoteAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		view := *b.Monitor.View()
		view.Voting = quorum.One(2)
		view.Masters = append([]admission.State(nil), view.Masters...)
		view.Masters[0].Phase, view.Masters[0].Err = admission.InQuarantine, admission.ErrQuarantine
		view.Masters[1].Phase = admission.Connecting
		f := b.Sender.NoQuorum(&view, context.Canceled)
		if len(f.Masters) != 2 || !errors.Is(f, admission.ErrQuarantine) || !errors.Is(f, context.Canceled) ||
			!strings.Contains(f.Masters[1].Error(), b.Pool.Addr(1)) || f.Left >= 0 {
			t.Errorf("the failure is %+v", f)
		}
	})
}

// H05, H56: the failure of a round contains, for each failed vote, a text that describes the problem. There is no such
// text if a master has granted the lease, does not have it, or refuses because of another holder.
func TestComplaintsAsTable(t *testing.T) {
	old := scripts.Record{Identity: "a/b/c", Masters: "a", Epoch: 4, Raised: 1, MaxTTL: 30 * time.Second,
		Admitted: true}.String()
	short := scripts.Record{Identity: "a/b/c", Masters: "a", MaxTTL: 5 * time.Second, Admitted: true}.String()
	record := func(o quorum.Outcome, text string) round.Vote {
		return round.Vote{Vote: scripts.Vote{Outcome: o, Record: text}}
	}
	for _, c := range []struct {
		vote round.Vote
		is   error
		says string
	}{
		{voteOf(quorum.Granted), nil, ""},
		{voteOf(quorum.Held), nil, ""},
		{voteOf(quorum.Missing), nil, ""},
		{record(quorum.Abstained, ""), admission.ErrQuarantine, "no admission record"},
		{record(quorum.Abstained, "x"), admission.ErrQuarantine, "has changed, and is being read"},
		{record(quorum.Refused, short), round.ErrTTLTooLong, "5s"},
		{record(quorum.Refused, old), admission.ErrOldMasters, "epoch 4"},
		{record(quorum.Refused, "?"), round.ErrTTLTooLong, `"?"`},
		{round.Vote{Vote: scripts.Vote{Outcome: quorum.Stale, Fence: 7e6, Time: 9e6}}, nil,
			"too old: its time is 00:00:09.000 UTC, and its fence 00:00:07.000 UTC"},
		{round.Vote{Vote: scripts.Vote{Outcome: quorum.Ahead, Fence: 7, Time: 9}}, nil, "too new"},
		{round.Vote{Err: io.EOF}, io.EOF, "EOF"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, 1)
			rd := b.Sender.New(b.Monitor.View(), "lock", "", nil)
			rd.Record(0, c.vote)
			f := rd.Failure(round.ErrNoQuorum, nil)
			switch {
			case c.says == "" && len(f.Masters) != 0:
				t.Errorf("the outcome %v has the complaints %v, want none", c.vote.Outcome, f.Masters)
			case c.says == "":
			case len(f.Masters) != 1 || c.is != nil && !errors.Is(f, c.is) || !strings.Contains(f.Masters[0].Error(), c.says) ||
				!strings.Contains(f.Masters[0].Error(), b.Pool.Addr(0)):
				t.Errorf("the vote %v has the complaints %v", c.vote, f.Masters)
			}
		})
	}
}

// H70: the decision is ErrTTLTooLong if so many masters refuse the TTL as too long, in their replies or according to
// their known records, that a majority is impossible. Refusals because of an old epoch are ignored.
func TestTooLongAsTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		view := b.Monitor.View()
		old := scripts.Record{Identity: "a/b/c", Masters: "a", Epoch: 4, MaxTTL: 30 * time.Second, Admitted: true}.String()
		known := b.Sender.Refusal(view, 0, 31*time.Second, round.NeedsVote)
		if !errors.Is(known.Err, round.ErrTTLTooLong) || !strings.Contains(known.Err.Error(), "redlock max-ttl") {
			t.Fatalf("TTL above the known limit: %+v", known)
		}
		said := round.Vote{Vote: scripts.Vote{Outcome: quorum.Refused, Record: "v2"}}
		epoch := round.Vote{Vote: scripts.Vote{Outcome: quorum.Refused, Record: old}}
		for _, c := range []struct {
			votes []round.Vote
			want  bool
		}{
			{[]round.Vote{known, known}, true},
			{[]round.Vote{known, said}, true},
			{[]round.Vote{known, voteOf(quorum.Held)}, false},
			{[]round.Vote{epoch, epoch, epoch}, false},
			{[]round.Vote{epoch, known}, false},
		} {
			rd := b.Sender.New(view, "lock", "", nil)
			for i, v := range c.votes {
				rd.Record(i, v)
			}
			if got := rd.Decision(); errors.Is(got, round.ErrTTLTooLong) != c.want {
				t.Errorf("for the votes %v the decision is %v", c.votes, got)
			}
		}
	})
}

// Refusal reports whether a call need not be sent to a master because the master is down, refuses the TTL, or does
// not meet the need of the call.
func TestRefusalAsTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		voting := admission.State{Phase: admission.Voting, Session: 1, Record: scripts.Record{MaxTTL: time.Second}}
		unread := admission.State{Phase: admission.Connecting, Session: 1, Stamp: admission.Unread}
		for _, c := range []struct {
			state admission.State
			ttl   time.Duration
			need  round.Need
			want  quorum.Outcome
			no    bool
		}{
			{voting, time.Second, round.NeedsVote, 0, false},
			{voting, time.Second + 1, round.NeedsConnection, quorum.Refused, true},
			{admission.State{Phase: admission.Voting, Session: 1}, time.Hour, round.NeedsVote, 0, false},
			{admission.State{Phase: admission.InQuarantine, Session: 1}, time.Second, round.NeedsVote, quorum.Abstained, true},
			{admission.State{Phase: admission.InQuarantine, Session: 1}, time.Second, round.NeedsRecord, 0, false},
			{admission.State{Phase: admission.Blocked, Session: 1}, time.Second, round.NeedsRecord, 0, false},
			{unread, time.Second, round.NeedsRecord, quorum.Abstained, true},
			{unread, time.Second, round.NeedsConnection, 0, false},
			{admission.State{Phase: admission.Down}, time.Second, round.NeedsConnection, quorum.Failed, true},
			{admission.State{Phase: admission.Connecting}, time.Second, round.NeedsConnection, quorum.Failed, true},
		} {
			view := *b.Monitor.View()
			view.Masters = []admission.State{c.state}
			v := b.Sender.Refusal(&view, 0, c.ttl, c.need)
			if v.Outcome != c.want || c.no != (v.Err != nil) {
				t.Errorf("for %+v and a TTL of %v Refusal returned %+v", c.state, c.ttl, v)
			}
		}
	})
}

// H05, H103: the decision of a lost round is ErrHeld only if one holder has a majority, or if a majority of the
// masters keeps the free name for a waiter. The decision is ErrUndecided if the votes are split, and ErrNoQuorum if
// too many masters cannot vote. It is ErrKind if the masters that know the name as another kind make a majority
// impossible, and ErrForeign if keys with other data help to do so.
func TestDecisionOfALostRound(t *testing.T) {
	heldBy := func(id string) scripts.Vote { return scripts.Vote{Outcome: quorum.Held, Holder: id, Token: 7} }
	free := scripts.Vote{Outcome: quorum.Held, Free: true}
	failed, granted := scripts.Vote{}, scripts.Vote{Outcome: quorum.Granted}
	stale, ahead := scripts.Vote{Outcome: quorum.Stale}, scripts.Vote{Outcome: quorum.Ahead}
	reader := func(n uint64) scripts.Vote { return heldBy(scripts.ShareID("me", n, scripts.Reader, 7, "")) }
	a, b, c := heldBy("a:1:"), heldBy("b:1:"), heldBy("c:1:")
	other, data := scripts.Vote{Outcome: quorum.OtherKind, Kind: scripts.KindShared}, scripts.Vote{Kind: "foreign"}
	synctest.Test(t, func(t *testing.T) {
		bed := newBed(t, 5)
		for _, x := range []struct {
			votes  []scripts.Vote
			off    quorum.Set // masters whose clocks are off
			next   quorum.Set // next set of a joint configuration; the old set is the first three masters
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
			{[]scripts.Vote{other, other, other}, 0, 0, round.ErrKind, "", false},
			{[]scripts.Vote{other, other, other, a, a}, 0, 0, round.ErrKind, "", false},
			{[]scripts.Vote{other, other, a, a, a}, 0, 0, round.ErrHeld, "a:1:", false},
			{[]scripts.Vote{other, other, a, granted, granted}, 0, 0, round.ErrUndecided, "", true},
			{[]scripts.Vote{other, other, failed, granted, granted}, 0, 0, round.ErrNoQuorum, "", true},
			{[]scripts.Vote{data, data, data, granted, granted}, 0, 0, round.ErrForeign, "", true},
			{[]scripts.Vote{other, other, data, granted, granted}, 0, 0, round.ErrForeign, "", true},
		} {
			view := *bed.Monitor.View()
			view.Masters = slices.Clone(view.Masters)
			for i := range x.off.All() {
				view.Masters[i].ClockOff = true
			}
			rd := bed.Sender.New(&view, "lock", "", nil)
			rd.LeaseID = "b:2:"
			if x.next != 0 {
				rd.Judge(quorum.Rule{Old: 0b111, Next: x.next}, 0)
			}
			for i, v := range x.votes {
				vote := round.Vote{Vote: v}
				if v == data {
					vote.Err = &transport.Error{Err: redis.Error("WRONGTYPE x")}
				}
				rd.Record(i, vote)
			}
			got := rd.Decision()
			f := rd.Failure(got, nil)
			undecided := errors.Is(x.want, round.ErrUndecided)
			known := undecided || errors.Is(x.want, round.ErrHeld)
			if !errors.Is(got, x.want) || errors.Is(got, round.ErrUndecided) != undecided ||
				known && f.Holder != x.holder || rd.Leads() != x.leads {
				t.Errorf("for the votes %+v the decision is %v, the holder %q, and Leads returns %v", x.votes, got, f.Holder,
					rd.Leads())
			}
		}
	})
}

// A vote counts only after the health of its master was recorded. So when all votes of a round have arrived, the
// health of each master is known.
func TestHealthIsKnownBeforeTheVoteCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		var r *round.Round
		var counted, seen quorum.Set
		health := round.NewHealth(func(master int) {
			tally := r.Tally()
			seen |= quorum.One(master)
			counted |= tally.In() & quorum.One(master)
		})
		silent := round.Sender{Pool: b.Pool, Clock: b.Clock, Doubt: b.Sender.Doubt, Health: health}
		r = silent.New(b.Monitor.View(), "probe", "", nil)
		r.LeaseID = "lease"
		for i := range 3 {
			r.Record(i, round.Vote{Err: &transport.Error{Err: redis.Error("OOM")}})
		}
		if seen != quorum.First(3) || counted != 0 {
			t.Errorf("the health of the masters %b was recorded, of %b only after their votes had counted", seen, counted)
		}
	})
}
