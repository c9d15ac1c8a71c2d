package redlock_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

func init() { roles["lead"] = leadRole }

// leadRole campaigns, and looks at the context of each leadership without a pause until it has ended. It tells when it
// last saw it alive.
func leadRole(ctx context.Context, l *redlock.Locker, a workerArgs) error {
	err := l.Lead(ctx, a.Name, func(leads context.Context) error {
		say("leads %d", redlock.TokenOf(leads))
		alive := int64(0)
		for n := 0; ; n++ {
			before := time.Now().UnixNano()
			if leads.Err() != nil {
				break
			}
			alive = before
			if n%64 == 0 {
				runtime.Gosched()
			}
		}
		say("alive %d", alive)
		return leads.Err()
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// A leader that is killed is followed by another within its TTL. One that is stopped is followed too, and when it goes on
// its context has ended before the other began. While a majority of the masters stands still nobody leads; afterwards one
// does again.
func TestLeadersOnRealMastersFollowOneAnother(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	f.admitted()
	args := workerArgs{URLs: f.urls, Name: "boss", TTL: time.Second}
	token := int64(0)
	leads := func(w *worker) (at int64) {
		t.Helper()
		before := token
		if _, err := fmt.Sscan(w.line("leads"), &token); err != nil || token <= before {
			t.Fatalf("a leader with token %d after %d, %v", token, before, err)
		}
		return time.Now().UnixNano()
	}
	dies := startWorker(t, "lead", args)
	leads(dies)
	stops := startWorker(t, "lead", args)
	f.queued("boss", 1) // the other waits
	dies.signal(os.Kill)
	leads(stops)
	goesOn := startWorker(t, "lead", args)
	for range rounds(3, 1) {
		stops.signal(stopSignal)
		began := leads(goesOn)
		stops.signal(continueSignal)
		var alive int64
		if _, err := fmt.Sscan(stops.line("alive"), &alive); err != nil {
			t.Fatal(err)
		}
		// began is when the line was read: the other has led for a moment by then.
		if alive >= began {
			t.Fatalf("%v after another led, the context of a leader that was stopped was alive", time.Duration(alive-began))
		}
		stops, goesOn = goesOn, stops
	}
	f.pause(0, 1)
	stops.line("alive")
	f.resume(0, 1)
	select { // whichever
	case text := <-stops.lines:
		t.Log(text)
	case text := <-goesOn.lines:
		t.Log(text)
	case <-time.After(hang):
		t.Fatal("nobody leads again")
	}
	stops.finish()
	goesOn.finish()
}
