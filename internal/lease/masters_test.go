package lease

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/property"
)

// A letter is one message that was sent to one master.
type letter struct {
	session uint64
	ballot  int64
	repair  bool
}

// The fields of sent agree with a list of all messages: the masters that were sent a message, the session if there
// was only one, and the largest ballot.
func TestSentMatchesAListOfAllMessages(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		var s sent
		letters := map[int][]letter{}
		sessions := []uint64{1, 2, 3, 4, 5}
		asked := int64(0) // the largest ballot of a message that is no repair
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

// checkSent compares the record of one master with all messages sent to it.
func checkSent(t *testing.T, s *sent, i int, list []letter, asked int64) {
	if got := s.to.Has(i); got != (len(list) > 0) {
		t.Errorf("master %d: sent reports a message: %v; the messages are %v", i, got, list)
	}
	if len(list) == 0 {
		if s.last(i) != 0 {
			t.Errorf("master %d, to which nothing was sent: ballot %d", i, s.last(i))
		}
		return
	}
	one := !slices.ContainsFunc(list, func(l letter) bool { return l.session != list[0].session })
	repaired := slices.ContainsFunc(list, func(l letter) bool { return l.repair })
	if got := s.session(i); got != 0 && (!one || repaired || got != list[0].session) {
		t.Errorf("master %d: the session is %d for the messages %v", i, got, list)
	}
	// The result may include the ballot of a round that left this master out: that only raises the fence to the fence of
	// the other masters.
	want := asked
	for _, l := range list {
		want = max(want, l.ballot)
	}
	if got := s.last(i); got != want {
		t.Errorf("master %d: the largest ballot is %d, want %d: %v", i, got, want, list)
	}
}

// A range contains one token more than there are hand-offs.
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
				t.Errorf("%d hand-offs: %+v after token %d, the masters were sent %d", handoff, l.tokens, h.Token(), last)
			}
			must.Do(t, h.Unlock(t.Context()))
			<-time.After(time.Millisecond) // the next range begins at the masters' time
			if next := b.lock(terms); next.Token() <= l.tokens.last {
				t.Errorf("token %d follows a range that ends with %d", next.Token(), l.tokens.last)
			} else if err := next.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Millisecond)
		}
	})
}

// H59: a client learns from refusals that a fence is ahead of the clocks. A master that abstained reports no fence.
func TestFencesAreLearnedFromRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 5)
		r := b.Sender.New(b.Monitor.View(), "lock", "", nil)
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
