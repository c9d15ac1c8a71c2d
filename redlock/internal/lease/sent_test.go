package lease

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/property"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
	"github.com/redlock-go/redlock/redlock/internal/testbed"
)

// A letter is one message that was sent to one master.
type letter struct {
	session uint64
	ballot  int64
	repair  bool
}

// What is sent is what a list of all messages says: to whom, over which one session, and with which largest ballot.
func TestSentMatchesAListOfAllMessages(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		var s sent
		letters := map[int][]letter{}
		sessions := []uint64{1, 2, 3, 4, 5}
		asked := int64(0) // the largest ballot that is not a repair's
		for ballot := int64(1); ballot < 2+r.Int64N(6); ballot++ {
			if r.IntN(2) == 0 {
				sessions[r.IntN(5)] += 10
			}
			view := &admission.View{Masters: make([]admission.State, 3+r.IntN(3))}
			if s.view == nil || len(view.Masters) > len(s.view.Masters) {
				view.Masters = view.Masters[:cap(view.Masters)]
			}
			for i := range view.Masters {
				view.Masters[i].Session = sessions[i]
			}
			if r.IntN(3) == 0 {
				i := r.IntN(len(view.Masters))
				s.touchRepair(view, i, ballot)
				letters[i] = append(letters[i], letter{sessions[i], ballot, true})
				continue
			}
			for i := range view.Masters {
				if r.IntN(4) > 0 {
					asked = ballot
					s.touch(view, i, ballot)
					letters[i] = append(letters[i], letter{sessions[i], ballot, false})
				}
			}
		}
		for i := range 5 {
			checkSent(t, &s, i, letters[i], asked)
		}
	})
}

// checkSent compares what is known of one master with all that was sent to it.
func checkSent(t *testing.T, s *sent, i int, list []letter, asked int64) {
	if got := s.to.Has(i); got != (len(list) > 0) {
		t.Errorf("master %d: sent to: %v, %v", i, got, list)
	}
	if len(list) == 0 {
		if s.last(i) != 0 {
			t.Errorf("master %d, to which nothing was sent: ballot %d", i, s.last(i))
		}
		return
	}
	one := !slices.ContainsFunc(list, func(l letter) bool { return l.session != list[0].session })
	if got := s.session(i); got != 0 && (!one || got != list[0].session) {
		t.Errorf("master %d: session %d for %v", i, got, list)
	}
	// A ballot of a round that this master was left out of costs nothing: it only raises the fence as the others have
	// it.
	want := asked
	for _, l := range list {
		want = max(want, l.ballot)
	}
	if got := s.last(i); got != want {
		t.Errorf("master %d: the largest ballot is %d, want %d: %v", i, got, want, list)
	}
}

func TestSentAsTable(t *testing.T) {
	view := func(sessions ...uint64) *admission.View {
		v := &admission.View{Masters: make([]admission.State, len(sessions))}
		for i, s := range sessions {
			v.Masters[i].Session = s
		}
		return v
	}
	var s sent
	if s.session(0) != 0 || s.last(0) != 0 || s.to != 0 {
		t.Error("nothing was sent, and something is known of it")
	}
	s.touch(view(7, 8), 0, 5)
	s.touch(view(7, 8), 1, 5)
	if s.session(0) != 7 || s.session(1) != 8 || s.last(0) != 5 || s.last(2) != 0 || s.to != 0b11 {
		t.Errorf("after one round: %+v", s)
	}
	s.touchRepair(view(7, 9, 4), 1, 20)
	if s.session(1) != 0 || s.last(1) != 20 || s.last(0) != 5 {
		t.Errorf("after a repair over another session: %+v", s)
	}
	s.touchRepair(view(7, 8), 0, 10)
	if s.session(0) != 0 || s.last(0) != 10 {
		t.Errorf("after a repair over the same session, which may be executed once more: %+v", s)
	}
	s.touchRepair(view(7, 9, 4), 2, 30)
	if s.session(2) != 0 || s.last(2) != 30 || s.to != 0b111 {
		t.Errorf("after a repair of a master that was not there: %+v", s)
	}
}

// A range has as many tokens as there are handoffs, and one more.
func TestTokensOfARange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		for _, handoff := range []int{0, 1, 32} {
			terms := terms()
			terms.Handoffs = handoff
			h := b.lock(terms)
			l := h.Lease()
			n, last := l.tokens.last-h.Token(), l.sent.last(0)
			if n != int64(handoff) || l.tokens.next != h.Token()+1 || last != l.tokens.last {
				t.Errorf("%d handoff: %+v after token %d, the masters were sent %d", handoff, l.tokens, h.Token(), last)
			}
			if err := h.Unlock(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Millisecond) // the next range begins at the masters' time
			if next := b.lock(terms); next.Token() <= l.tokens.last {
				t.Errorf("token %d follows a range that ends with %d", next.Token(), l.tokens.last)
			} else if err := next.Unlock(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Millisecond)
		}
	})
}

// H92: a release over the connection of the acquire carries no ballot, and leaves the fence alone where the lease is
// there. One over another connection raises it (H02), so that the acquire is refused if it comes after its own release.
func TestReleaseRaisesTheFenceIfTheAcquireMayComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		h := b.lock(terms())
		last := h.Lease().tokens.last
		b.Masters.Master(2).CutConnections()
		b.Masters.Master(2).Evict("n")
		after(time.Second) // it is connected again, over another session
		fence := testbed.Prefix.Fence("n")
		for i := range 3 {
			b.Masters.Master(i).EvictKey(fence)
		}
		if err := h.Unlock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for i := range 3 { // the third may have been repaired, with a larger ballot
			if got, there := b.Masters.Master(i).Get(fence); there != (i == 2) || there && got < fmt.Sprintf("%016d", last) {
				t.Errorf("after the release the fence of master %d is %q, the last ballot was %d", i, got, last)
			}
		}
	})
}

// A fence that is ahead is learned from the refusals; a master that abstained shows none (H59).
func TestFencesAreLearnedFromRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 5)
		r := b.Sender.New(b.Monitor.View(), "lock", nil)
		now := b.Manager.Ballots.Median(b.Manager.Clock.Now())
		ahead := now + (10 * time.Second).Microseconds()
		r.Record(0, vote(admissionVote, 0, now))
		for i := range 4 {
			r.Record(i+1, vote(staleVote, ahead+int64(i), now))
		}
		b.recordRefusals(r, "n")
		first, _, err := b.Manager.Ballots.Propose(b.Manager.Clock.Now(), "n", 0, 0)
		if err != nil || first != ahead+3 {
			t.Errorf("the next ballot is %d above the third of the fences, %v", first-ahead-2, err)
		}
	})
}

// What a vote said counts for the server that said it: one that may have forgotten since then has lost the lease (H90).
func TestVoteOfAReplacedServerDoesNotCount(t *testing.T) {
	at := func(incarnation uint64) *admission.View {
		return &admission.View{Masters: []admission.State{{Incarnation: incarnation}}}
	}
	for _, c := range []struct {
		then, now *admission.View
		lost      bool
	}{
		{at(1), at(1), false}, {at(1), at(2), true}, {at(2), at(2), false}, {&admission.View{}, at(1), true},
		{at(1), &admission.View{}, true},
	} {
		l := &Lease{m: &Manager{Env: Env{View: func() *admission.View { return c.now }}}}
		l.markHeldLocked(c.then, 0)
		if l.on.lost.Has(0) != c.lost || l.on.has.Has(0) == c.lost {
			t.Errorf("%+v, then %+v: has %b, lost %b", c.then.Masters, c.now.Masters, l.on.has, l.on.lost)
		}
	}
}

// H75: a live lease is gone when those that have lost it leave no quorum; what failed or refused says nothing of that.
func TestLeaseEndsWhenTooManyMastersHaveLostIt(t *testing.T) {
	config := &quorum.Config{Rule: quorum.Rule{Old: quorum.First(3)}}
	view := &admission.View{Config: config, Masters: make([]admission.State, 3)}
	m := &Manager{Env: Env{View: func() *admission.View { return view }, Clock: clock.Runtime()}}
	for _, c := range []struct {
		votes []round.Vote
		want  bool
	}{
		{nil, false},
		{[]round.Vote{vote(missingVote, 0, 0)}, false},
		{[]round.Vote{vote(missingVote, 0, 0), vote(missingVote, 0, 0)}, true},
		{[]round.Vote{vote(missingVote, 0, 0), vote(admissionVote, 0, 0), {}}, false},
	} {
		l := &Lease{m: m, state: live, config: config, on: masters{has: quorum.First(3)}}
		r := (&round.Sender{Clock: m.Clock, Doubt: func(int, string) {}}).New(view, "extend", nil)
		for i := range c.votes {
			l.recordVoteLocked(r, i, c.votes[i].Outcome)
		}
		if gone := l.goneLocked() != nil; gone != c.want {
			t.Errorf("%v: gone is %v", c.votes, gone)
		}
	}
}
