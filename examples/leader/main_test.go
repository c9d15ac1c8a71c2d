package main

import (
	"context"
	"testing"
	"time"

	"github.com/redlock-go/redlock/examples/internal/testmasters"
)

// One of two processes leads. When the leader is stopped, it ends its work and resigns, and the other process leads.
func TestNextProcessLeads(t *testing.T) {
	urls := testmasters.Listen(t, 3)
	type term struct {
		who   int
		token int64
	}
	began, ended := make(chan term, 2), make(chan int, 2)
	stop, done := make([]context.CancelFunc, 2), make([]chan error, 2)
	for who := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		stop[who], done[who] = cancel, make(chan error, 1)
		go func() {
			done[who] <- run(ctx, urls, func(ctx context.Context, token int64) error {
				began <- term{who, token}
				<-ctx.Done()
				ended <- who
				return nil
			})
		}()
	}
	next := func() (one term) {
		select {
		case one = <-began:
		case <-time.After(time.Minute):
			t.Fatal("no process leads")
		}
		return one
	}
	first := next()
	seen, err := testmasters.Locker(t, urls).Inspect(t.Context(), "leader")
	if err != nil || seen.Token != first.token || seen.Value != address() {
		t.Errorf("the name is in the state %+v, %v; want the value %q", seen, err, address())
	}
	stop[first.who]()
	second := next()
	select {
	case <-ended: // the first term ended before the second began
	default:
		t.Error("two processes lead")
	}
	if second.who == first.who || second.token <= first.token {
		t.Errorf("the second term is %+v after %+v, want the other process and a larger token", second, first)
	}
	stop[second.who]()
	for who := range 2 {
		if err := <-done[who]; err != nil {
			t.Error(err)
		}
	}
}
