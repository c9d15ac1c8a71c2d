//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/examples/internal/testmasters"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc"
)

var slotCount = flag.Int("slots", 20, "number of slots of TestSlotRunsOnce")

// childArgs is an environment variable. If it contains arguments, the test binary runs the program with these
// arguments.
const childArgs = "REDLOCK_EXAMPLE_CRON"

func TestMain(m *testing.M) {
	if text := os.Getenv(childArgs); text != "" {
		var args []string
		if err := json.Unmarshal([]byte(text), &args); err != nil {
			panic(err)
		}
		ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
		defer cancel()
		if err := run(ctx, args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const every = 1200 * time.Millisecond

// A stretch is a period in which a program could not run its job. The period begins with the slot before first, and
// ends when the program has reported a slot after last.
type stretch struct {
	first, last int64
	why         string
}

func slotAt(at time.Time) int64 { return at.Round(every).UnixNano() / int64(every) }

// A host is one program with its own clock.
type host struct {
	*testing.T
	args []string
	skew time.Duration
	cmd  *exec.Cmd
	done chan struct{}

	mu   sync.Mutex
	told map[int64][]string // by slot
	away []stretch
}

func (h *host) start() {
	h.Helper()
	text, err := json.Marshal(h.args)
	if err != nil {
		h.Fatal(err)
	}
	h.cmd = exec.Command(os.Args[0])
	h.cmd.Env = append(os.Environ(), childArgs+"="+string(text))
	h.cmd.Stderr = io.Discard // warnings about the faults
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		h.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		h.Fatal(err)
	}
	h.done = make(chan struct{})
	go func() {
		defer close(h.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			text, what, _ := strings.Cut(lines.Text(), " ")
			at, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				h.Errorf("the program wrote the unexpected line %q", lines.Text())
				continue
			}
			slot := slotAt(at)
			h.mu.Lock()
			h.told[slot] = append(h.told[slot], what)
			h.mu.Unlock()
		}
		_ = h.cmd.Wait()
	}()
}

func (h *host) signal(s os.Signal) {
	h.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		h.Error(err)
	}
}

// gone records that the program could not run its job between from and now.
func (h *host) gone(from time.Time, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = append(h.away, stretch{slotAt(from.Add(h.skew)), slotAt(time.Now().Add(h.skew)) + 1, why})
}

// reason returns why the program did not run the job of a slot.
func (h *host) reason(slot int64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var reasons []string
	for _, a := range h.away {
		back := a.last + 1
		for back < slot && h.told[back] == nil {
			back++
		}
		if slot >= a.first-1 && slot <= back {
			reasons = append(reasons, a.why)
		}
	}
	if h.told[slot] == nil {
		reasons = append(reasons, "its scheduler skipped the slot")
	}
	return strings.Join(append(reasons, h.told[slot]...), ", ")
}

// Three programs whose clocks differ by up to half a second run a job of a millisecond. The job runs at most once per
// slot, although programs are killed and stopped, and masters die, hang and restart empty. If no program ran the job of
// a slot, the test logs the reason of each program.
func TestSlotRunsOnce(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it takes half a minute")
	}
	servers, urls := testmasters.Start(t, 5)
	file := filepath.Join(t.TempDir(), "runs.txt")
	hosts := make([]*host, 3)
	for i := range hosts {
		skew := time.Duration(i) * 250 * time.Millisecond
		h := &host{T: t, skew: skew, told: make(map[int64][]string), args: append([]string{"-every", every.String(),
			"-skew", skew.String(), "-file", file}, urls...)}
		h.start()
		hosts[i] = h
	}
	first := time.Now().Add(2 * every).Truncate(every)
	for time.Now().Before(first.Add(time.Duration(*slotCount) * every)) {
		t.Log(fault(t, hosts, servers))
	}
	last := time.Now().Add(-every).Truncate(every)
	for _, h := range hosts {
		h.signal(os.Interrupt)
		<-h.done
	}

	runs := runsOf(t, file)
	missed := 0
	for at := first; at.Before(last); at = at.Add(every) {
		slot := slotAt(at)
		switch n := len(runs[slot]); {
		case n > 1:
			t.Errorf("slot %d was run %d times, with the tokens %v", slot, n, runs[slot])
		case n == 0:
			missed++
			for i, h := range hosts {
				t.Logf("slot %d was not run: program %d: %s", slot, i, h.reason(slot))
			}
		}
	}
	slots := int(last.Sub(first) / every)
	t.Logf("of %d slots, %d were run and %d were not", slots, slots-missed, missed)
	if missed > slots/2 {
		t.Error("the job was not run in most slots")
	}
}

// fault injects one fault into a program or a master, and returns a description of the fault. A majority of the
// masters always votes, because only the first master restarts empty and is then in quarantine.
func fault(t *testing.T, hosts []*host, servers []*redisproc.Server) string {
	t.Helper()
	h, began := hosts[rand.IntN(len(hosts))], time.Now()
	long := time.Duration(100+rand.IntN(2900)) * time.Millisecond
	switch rand.IntN(5) {
	case 0:
		h.signal(syscall.SIGKILL)
		<-h.done
		h.start()
		h.gone(began, "was killed")
		return "a program was killed, and started again"
	case 1:
		h.signal(syscall.SIGSTOP)
		time.Sleep(long)
		h.signal(syscall.SIGCONT)
		h.gone(began, "was stopped")
		return fmt.Sprint("a program was stopped for ", long)
	case 2: // only the first master restarts empty
		if err := errors.Join(servers[0].Kill(), servers[0].Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
		return "a master died, and is back empty"
	case 3:
		s := servers[1+rand.IntN(4)]
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(long)
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint("a master hung for ", long)
	}
	time.Sleep(long)
	return fmt.Sprint("no fault for ", long)
}

// runsOf returns the tokens with which the job ran, indexed by slot.
func runsOf(t *testing.T, file string) map[int64][]int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	runs := make(map[int64][]int64)
	for line := range strings.Lines(string(text)) {
		var name string
		var token int64
		_, err := fmt.Sscan(line, &name, &token)
		at, err2 := time.Parse(time.RFC3339Nano, strings.TrimPrefix(name, jobName+"/"))
		if err := errors.Join(err, err2); err != nil || token <= 0 {
			t.Fatalf("the job wrote %q: %v", line, err)
		}
		runs[slotAt(at)] = append(runs[slotAt(at)], token)
	}
	return runs
}
