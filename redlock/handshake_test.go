package redlock_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// required are the commands of a handshake without which no client can lock.
var required = []string{"AUTH", "SELECT", "INFO"}

// refusals are error replies of servers, proxies and managed services.
var refusals = []string{
	"ERR unknown command", "ERR unknown subcommand or wrong number of arguments", "ERR no such scripting engine",
	"ERR This command is disabled", "NOPERM this user has no permissions to run the command", "NOAUTH sign in first",
	"OOM command not allowed when used memory > 'maxmemory'.", "BUSY a script is running", "LOADING the dataset",
	"MISCONF snapshots fail", "NOREPLICAS Not enough good replicas to write.", "MASTERDOWN Link with MASTER is down",
	"READONLY You can't write against a read only replica.", "CLUSTERDOWN Hash slot not served", "MOVED 1 h:1",
}

// optionalSteps returns the commands that a client sends in its handshakes, except the required ones, scripts, and
// those of subscriptions.
func optionalSteps(t *testing.T) (steps []string) {
	bubble(t, 1, func(w *cluster) {
		w.locker()
		other := append([]string{"EVALSHA", "EVAL", "SUBSCRIBE", "PING"}, required...)
		for _, s := range w.wire.sent() {
			if step := strings.Join(s.args[:min(2, len(s.args))], " "); !slices.Contains(other, s.args[0]) {
				steps = append(steps, step)
			}
		}
	})
	slices.Sort(steps)
	return slices.Compact(steps)
}

// H171: a server that refuses an optional command of the handshake, for whatever reason, is up. After a reconnect held
// locks are extended, and a client that starts then acquires locks and is woken. The steps are those that a client
// sends, so a step that is added later is tested as well.
func TestOptionalStepsEndNoConnection(t *testing.T) {
	t.Parallel()
	steps := optionalSteps(t)
	for _, known := range []string{"SCRIPT LOAD", "CONFIG GET", "CLIENT SETNAME", "CLIENT SETINFO"} {
		if !slices.Contains(steps, known) {
			t.Errorf("%s is not a step of the handshake: %q", known, steps)
		}
	}
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			for _, refusal := range refusals {
				t.Run(refusal, func(t *testing.T) {
					bubble(t, 3, func(w *cluster) { refuseStep(w, step, refusal) })
				})
			}
		})
	}
}

func refuseStep(w *cluster, step, refusal string) {
	l := w.locker()
	k := must(l.Lock(w.Context(), "a"))(w)
	w.each(func(i int, m *memory.Master) {
		w.replay(sent{i, time.Now(), []string{"SCRIPT", "FLUSH"}})
		m.RefuseCommand(step, refusal)
		m.CutConnections()
	})
	after(30 * time.Second) // three TTLs
	w.wantHeld(k, 3)
	other := w.locker()
	w.noError(other.Do(w.Context(), "b", nothing, redlock.WithTries(1)))
	w.isError(errOf(other.TryLock(w.Context(), "a")), redlock.ErrHeld)
	got := make(chan error, 1)
	go func() {
		next, err := other.Lock(w.Context(), "a")
		if err == nil {
			err = next.Unlock(w.Context())
		}
		got <- err
	}()
	after(time.Second)
	w.noError(k.Unlock(w.Context()))
	synctest.Wait()
	select {
	case err := <-got:
		w.noError(err)
	default:
		w.Error("the waiter was not woken")
		w.noError(<-got)
	}
}
