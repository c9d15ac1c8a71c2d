package waitqueue

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/testbed"
)

// A call that cannot use a lingering lease waits behind a call that comes while the lease is being released, and gets
// the name after that call. Afterwards nothing is left of either.
func TestLingeringLeaseDoesNotSuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestClient(t, 5)
		p.idle()
		came := p.callAtEnd()
		first := p.start(p.call(0, true))
		after(time.Second)
		second := came.Load()
		if second == nil || second.is() != "holds" || first.state != queued {
			t.Fatalf("the first call is in state %d", first.state)
		}
		p.unlock(second)
		if first.is() != "holds" {
			t.Fatalf("the first call %s after the second has unlocked", first.is())
		}
		p.unlock(first)
		p.nothingLeft()
	})
}

// A call that comes when a lingering lease has just expired waits until the lease has ended, and then gets the name.
func TestLingeringLeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestClient(t, 5)
		p.idle()
		came := p.callAtEnd()
		after(2 * time.Second)
		next := came.Load()
		if next == nil || next.is() != "holds" {
			t.Fatal("the next call does not hold the name")
		}
		p.unlock(next)
		p.nothingLeft()
	})
}

// H103: a call that does not wait, and comes when a lingering lease has just expired, gets the name: nobody holds it.
func TestTryWhenLingeringLeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestClient(t, 5)
		p.idle()
		h, result := &lease.Hold{}, make(chan error, 1)
		p.mu.Lock()
		p.ending = func() {
			a := &lease.Attempt{Op: "try", Name: "n", Keys: testbed.Keys("n"), Terms: terms()}
			result <- p.Try(t.Context(), a, h, 0)
		}
		p.mu.Unlock()
		must.Do(t, <-result)
		synctest.Wait()
		must.Do(t, h.Unlock(t.Context()))
		p.nothingLeft()
	})
}

// callAtEnd makes a call begin when a lease has ended, before the Queue knows that.
func (p *testClient) callAtEnd() *atomic.Pointer[pending] {
	var came atomic.Pointer[pending]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ending = func() { came.Store(p.startDuring(p.call(0, false))) }
	return &came
}

// idle leaves a lease lingering for a second.
func (p *testClient) idle() {
	p.t.Helper()
	c := p.call(0, false)
	c.Terms.Linger = time.Second
	k := p.start(c)
	synctest.Wait()
	p.unlock(k)
	if l := p.Holder("n"); l == nil || !l.Idle() {
		p.t.Fatal("the lease does not linger")
	}
}

func (p *testClient) unlock(k *pending) {
	p.t.Helper()
	if k.is() != "holds" {
		p.t.Fatalf("the call %s", k.is())
	}
	must.Do(p.t, k.Hold.Unlock(p.t.Context()))
	synctest.Wait()
}

// nothingLeft fails the test if the Queue still knows the name.
func (p *testClient) nothingLeft() {
	p.t.Helper()
	p.Queue.mu.Lock()
	defer p.Queue.mu.Unlock()
	if nq := p.names["n"]; nq != nil {
		p.t.Errorf("the name has a holder: %v, a contender: %v, %d waiting calls", nq.holder != nil, nq.contender != nil,
			nq.waiting.len())
	}
}
