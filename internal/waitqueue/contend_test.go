package waitqueue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
)

const (
	held      = quorum.Held
	granted   = quorum.Granted
	failed    = quorum.Failed
	stale     = quorum.Stale
	abstained = quorum.Abstained
)

// A dueCase is the state of a contender over five masters, and the time that it must wait before its next attempt.
type dueCase struct {
	name     string
	votes    []round.Vote // of the last round; fewer than five: the others have not answered
	nothing  bool         // nothing was sent, since no quorum votes
	ticket   bool
	standing int // number of masters that have confirmed the inbox
	noQuorum bool
	lost     int           // number of failed attempts that wake-ups have caused
	wakeUps  []int         // masters that have sent a wake-up
	firstAt  time.Duration // how long ago the first of these wake-ups came
	since    time.Duration // how long ago the round was decided

	want         time.Duration
	wantNoQuorum bool
}

func votes(n int, v round.Vote) (list []round.Vote) {
	for range n {
		list = append(list, v)
	}
	return list
}

func join(lists ...[]round.Vote) []round.Vote { return slices.Concat(lists...) }

const ms = time.Millisecond

var (
	first   = vote(held, 0, 9*time.Second)
	fourth  = vote(held, 3, 9*time.Second)
	soon    = vote(held, 3, 300*ms)
	down    = vote(failed, 0, 0)
	unasked = round.Vote{Vote: scripts.Vote{Outcome: abstained}, Err: errors.New("it does not vote")}
)

var dueCases = []dueCase{
	{name: "first in a queue", votes: votes(5, first), ticket: true, standing: 5, want: time.Second},
	{name: "second in one queue, fourth in the others", ticket: true, standing: 5, want: time.Second,
		votes: join(votes(4, fourth), votes(1, vote(held, 1, 9*time.Second)))},
	{name: "fourth", votes: votes(5, fourth), ticket: true, standing: 5, want: 5 * time.Second},
	{name: "fourth, a while ago",
		votes: votes(5, fourth), ticket: true, standing: 5, since: 2 * time.Second, want: 3 * time.Second},
	{name: "fourth, and masters to which nothing was sent", ticket: true, standing: 5, want: 5 * time.Second,
		votes: join(votes(3, fourth), votes(2, unasked))},
	{name: "fourth, and masters that failed", ticket: true, standing: 5, want: 5 * time.Second,
		votes: join(votes(3, fourth), votes(2, down))},
	{name: "a quorum is free soon",
		votes: join(votes(3, soon), votes(2, fourth)), ticket: true, standing: 5, want: 301 * ms},
	{name: "a minority is free soon",
		votes: join(votes(2, soon), votes(3, fourth)), ticket: true, standing: 5, want: 5 * time.Second},
	{name: "free in a moment", votes: votes(5, vote(held, 3, 0)), ticket: true, standing: 5, want: ms},
	{name: "wake-ups of a quorum",
		votes: votes(5, fourth), ticket: true, standing: 5, wakeUps: []int{0, 1, 2}, want: 0},
	{name: "a first wake-up", votes: votes(5, fourth), ticket: true, standing: 5, wakeUps: []int{4}, want: 0},
	{name: "after a lost attempt a first wake-up, and a second one later",
		votes: votes(5, fourth), ticket: true, standing: 5, lost: 1, wakeUps: []int{4, 3}, firstAt: ms, want: ms},
	{name: "after a lost attempt a first wake-up, over",
		votes: votes(5, fourth), ticket: true, standing: 5, lost: 1, wakeUps: []int{4}, firstAt: 2 * ms, want: 0},
	{name: "a first wake-up after two that were without success",
		votes: votes(5, fourth), ticket: true, standing: 5, lost: 2, wakeUps: []int{4}, want: 4 * ms},
	{name: "a first wake-up after 29 that were without success",
		votes: votes(5, fourth), ticket: true, standing: 5, lost: 29, wakeUps: []int{4}, want: time.Second},
	{name: "no ticket, and wake-ups can arrive now", votes: votes(5, first), standing: 3, want: 0},
	{name: "no ticket, and no wake-ups can arrive", votes: votes(5, first), standing: 2, want: 10 * ms},
	{name: "no ticket, for a part of the pause", votes: votes(5, first), since: 4 * ms, want: 6 * ms},
	{name: "no quorum of voters",
		votes: join(votes(2, fourth), votes(3, down)), ticket: true, standing: 5, want: time.Second, wantNoQuorum: true},
	{name: "no quorum of voters, a while ago",
		votes: join(votes(2, fourth), votes(3, unasked)), ticket: true, standing: 5,
		since: 600 * ms, want: 400 * ms, wantNoQuorum: true},
	{name: "no quorum yet, others may answer",
		votes: join(votes(2, fourth), votes(1, down)), ticket: true, standing: 5, want: 5 * time.Second},
	{name: "remembered, and there is one again", votes: votes(5, first), standing: 5, noQuorum: true, want: 0},
	{name: "remembered, and there is still none",
		votes: votes(5, down), standing: 5, noQuorum: true, want: time.Second, wantNoQuorum: true},
	{name: "remembered, not known yet",
		votes: votes(1, first), standing: 5, noQuorum: true, want: time.Second, wantNoQuorum: true},
	{name: "nothing was sent", nothing: true, standing: 5, want: time.Second, wantNoQuorum: true},
	{name: "nothing was sent, half a second ago",
		nothing: true, standing: 5, since: 500 * ms, want: 500 * ms, wantNoQuorum: true},
}

// A contender waits as long as each row of dueCases says, and records whether there is no quorum.
func TestDueAsTable(t *testing.T) {
	for _, c := range dueCases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newTestClient(t, 5)
				n := c.contention(p)
				if got := n.untilAttemptLocked(); got != c.want || p.noQuorum != c.wantNoQuorum {
					t.Errorf("the next attempt is in %v, no quorum: %v; want %v, %v", got, p.noQuorum, c.want, c.wantNoQuorum)
				}
			})
		})
	}
}

// contention returns the contention that c describes.
func (c *dueCase) contention(p *testClient) *contention {
	call := p.call(0, false)
	call.wake = make(chan struct{}, 1)
	p.inbox = fakeSub(quorum.First(c.standing))
	p.ticketLocked(call)
	p.noQuorum = c.noQuorum
	n := &contention{
		q: p.Queue, c: call, ticket: c.ticket, wakeUps: c.lost, failure: &round.Failure{}, pause: 10 * ms,
	}
	if c.nothing {
		v := *p.Monitor.View()
		v.Voting = quorum.First(2)
		p.view = &v
	} else {
		n.round = p.Sender.New(p.Monitor.View(), "lock", "", nil)
		for i, v := range c.votes {
			n.round.Record(i, v)
		}
	}
	n.decided = time.Now()
	<-time.After(c.since - c.firstAt)
	for _, i := range c.wakeUps {
		call.wakeLocked(i)
	}
	<-time.After(c.firstAt)
	return n
}

// After a lost attempt, a contender that gets a first wake-up waits for twice the usual spread of the masters'
// replies, if that is more than 2 ms. The spread is the time from the first reply to the reply that makes a quorum.
// Masters to which nothing was sent are ignored.
func TestFirstWakeUpWaitsTwiceTheSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestClient(t, 5)
		c := dueCase{ticket: true, standing: 5, lost: 1, votes: votes(1, unasked)}
		n := c.contention(p)
		for i, pause := range []time.Duration{50 * ms, 3 * ms, 4 * ms, 20 * ms} {
			<-time.After(pause)
			n.round.Record(i+1, fourth)
		}
		n.c.wakeLocked(2)
		if got := n.untilAttemptLocked(); got != 14*ms {
			t.Errorf("the next attempt is in %v, want 14ms", got)
		}
	})
}

// H93: a master whose clock is off refuses every ballot, so it is not a voter. A master that refuses a ballot for
// another reason is a voter.
func TestVotersAsTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestClient(t, 5)
		for _, c := range []struct {
			votes []round.Vote
			off   []int
			want  quorum.Verdict
		}{
			{votes(5, first), nil, quorum.Won},
			{votes(3, vote(granted, -1, 0)), nil, quorum.Won},
			{votes(2, first), nil, quorum.Pending},
			{join(votes(2, first), votes(3, down)), nil, quorum.Lost},
			{votes(5, vote(stale, -1, 0)), nil, quorum.Won},
			{votes(5, vote(stale, -1, 0)), []int{0, 1, 2}, quorum.Lost},
			{votes(5, first), []int{0, 1, 2}, quorum.Won}, // a held name: the clocks do not matter
			{join(votes(2, first), votes(3, vote(quorum.Ahead, -1, 0))), []int{2, 3}, quorum.Won},
			{join(votes(2, first), votes(3, vote(quorum.Ahead, -1, 0))), []int{2, 3, 4}, quorum.Lost},
		} {
			view := *p.Monitor.View()
			view.Masters = slices.Clone(view.Masters)
			for _, i := range c.off {
				view.Masters[i].ClockOff = true
			}
			n := &contention{q: p.Queue, round: p.Sender.New(&view, "lock", "", nil)}
			for i, v := range c.votes {
				n.round.Record(i, v)
			}
			if got := n.voters(); got != c.want {
				t.Errorf("for the votes %v, with the clocks of %v off, voters returned %d, want %d", c.votes, c.off, got, c.want)
			}
		}
	})
}

// If a quorum votes again after an attempt that sent nothing and before the wait that follows, the contender does
// not wait.
func TestQuorumThatReturnsBeforeWaitIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestClient(t, 3)
		c := dueCase{nothing: true, standing: 3}
		n := c.contention(p)
		p.view = nil
		if d := n.untilAttemptLocked(); d > 0 {
			t.Errorf("the contender waits for %v", d)
		}
	})
}

// H78: the error of a call that could not send an attempt names the masters, too.
func TestCallThatCouldNotSendNamesTheMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestClient(t, 3)
		view := *p.Monitor.View()
		view.Voting, view.Masters = 0, make([]admission.State, 3)
		p.Queue.Ready = func(ctx context.Context) (*admission.View, error) {
			<-ctx.Done()
			return &view, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		err := p.Lock(ctx, p.call(0, false))
		for i := range 3 {
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), p.Masters.Master(i).Addr()) {
				t.Errorf("the error does not name master %d: %v", i, err)
			}
		}
	})
}

// The inbox is closed some time after the last waiter has left, and not while a call waits.
func TestInboxStaysOpenForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestClient(t, 3)
		p.Masters.Take("n", time.Hour)
		l := p.start(p.call(0, false))
		after(time.Minute)
		if !p.subscribed() {
			t.Fatal("the inbox was closed while a call waits")
		}
		l.cancel()
		l.is()
		after(inboxIdle - ms)
		if !p.subscribed() {
			t.Error("the inbox was closed immediately")
		}
		if after(2 * ms); p.subscribed() {
			t.Error("the inbox was not closed")
		}
	})
}
