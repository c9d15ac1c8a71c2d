package redlock_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/worker"
	"github.com/redlock-go/redlock/redlock"
)

func init() { roles["lead"] = leadRole }

// leadRole campaigns, and checks the context of each leadership in a loop until it has ended. It reports when the
// context was last alive.
func leadRole(ctx context.Context, l *redlock.Locker, a workerArgs) error {
	err := l.Lead(ctx, a.Name, func(leads context.Context) error {
		worker.Say("leads %d", redlock.TokenOf(leads))
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
		worker.Say("alive %d", alive)
		return leads.Err()
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// After a leader is killed another leads within its TTL. After a leader is stopped another leads, too, and when the
// first resumes, its context has ended before the other began. While a majority of the masters is stopped no client
// leads; afterwards one does again.
func TestLeadersOnRealMastersFollowOneAnother(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	f.admitted()
	args := workerArgs{URLs: f.urls, Name: "boss", TTL: time.Second}
	token := int64(0)
	leads := func(w *worker.Process) (at int64) {
		t.Helper()
		before := token
		if _, err := fmt.Sscan(w.Line("leads"), &token); err != nil || token <= before {
			t.Fatalf("a leader with token %d after %d, %v", token, before, err)
		}
		return time.Now().UnixNano()
	}
	dies := startWorker(t, "lead", args)
	leads(dies)
	stops := startWorker(t, "lead", args)
	f.queued("boss", 1) // the other waits
	dies.Signal(os.Kill)
	leads(stops)
	goesOn := startWorker(t, "lead", args)
	for range rounds(3, 1) {
		stops.Signal(stopSignal)
		began := leads(goesOn)
		stops.Signal(continueSignal)
		var alive int64
		if _, err := fmt.Sscan(stops.Line("alive"), &alive); err != nil {
			t.Fatal(err)
		}
		// began is the time at which the line was read: by then the other has led for a moment.
		if alive >= began {
			t.Fatalf("%v after another led, the context of a leader that was stopped was alive", time.Duration(alive-began))
		}
		stops, goesOn = goesOn, stops
	}
	f.pause(0, 1)
	stops.Line("alive")
	f.resume(0, 1)
	select { // whichever
	case text := <-stops.Lines:
		t.Log(text)
	case text := <-goesOn.Lines:
		t.Log(text)
	case <-time.After(hang):
		t.Fatal("no client leads again")
	}
	stops.Finish()
	goesOn.Finish()
}
