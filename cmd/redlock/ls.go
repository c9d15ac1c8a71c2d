package main

import (
	"context"
	_ "embed" // for the script
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
)

//go:embed ls.lua
var scanText string

// scan is the script of one step of a scan through the keys of a master. A test checks the SHA-1.
var scan = &frame.Script{Name: "scan", SHA: "689fa927dc00a120a9a5763cd4628ecf9fc1a5e7", Text: scanText}

// Pace of a scan: each step examines about scanStep keys, which takes some 0.2 ms of the master's time. A pause
// follows, of at least scanPause and at least twenty times the duration of the step.
const (
	scanStep  = 250
	scanPause = 5 * time.Millisecond

	scanFailures = 5                      // how many times a failed step is repeated
	scanRetry    = 500 * time.Millisecond // pause before each repetition
)

func lsCommand(a *app) *cobra.Command {
	var all bool
	var most int
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "ls [URL...] [PREFIX]",
		Short: "list the names that are held",
		Long: `Lists the names that are held now, on a quorum of the masters, in order; with PREFIX only those that begin with
it. It writes nothing. With --all it also lists names that fewer masters have: locks that are being acquired or
released, and leftovers of holders that have died. Names with unusual characters are quoted.

It scans all keys of all masters (SCAN), about 250 at a time with pauses, which costs a busy master little: at most
about 50 000 keys a second. Names that are acquired or released meanwhile may be missing. It ends after --timeout, or
after --most names of a master. A restricted user also needs the right +scan.

Exit status: 0; 1 if the list may lack names because it was cut off, or because a minority of the masters could not
be read; 2 if fewer than a quorum could be read.`,
		Example: `  redlock ls --config locks.json orders:
  redlock ls --json | jq -r '.names[].name'`,
		Args: func(cmd *cobra.Command, args []string) error {
			_, names := cutURLs(args)
			return errors.Join(cobra.MaximumNArgs(1)(cmd, names), checkNames(names))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			urls, names := cutURLs(args)
			if most < 1 {
				return wrongCall(cmd, fmt.Errorf("--most %d: 1 is the least", most))
			}
			return a.observe(cmd, urls, func(c *client) error {
				ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, errTimedOut)
				defer cancel()
				c.settled(ctx)
				return showHeld(&a.console, c.scan(ctx, strings.Join(names, ""), most), c.sets(), all)
			})
		},
	}
	//mutant:ls-timeout -> cmd.Flags().DurationVar(&a.deployment.timeout, "timeout", time.Minute, "")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "bound on the whole command")
	cmd.Flags().BoolVar(&all, "all", false, "include names that no quorum has")
	cmd.Flags().IntVar(&most, "most", 1_000_000, "maximum number of names of one master")
	return cmd
}

// A scanned is the result of scanning one master.
type scanned struct {
	names map[string]bool
	addr  string
	err   error // why the scan is incomplete
}

// scan scans the keys of all masters concurrently for names that begin with begins. On each master it ends after most
// names.
func (c *client) scan(ctx context.Context, begins string, most int) (list []*scanned) {
	var wg sync.WaitGroup
	for _, p := range c.pools {
		t := p.Transport()
		before := c.config.Prefix + t.Bucket().Tag() + ":{"
		for i := range t.N() {
			m := &scanned{names: make(map[string]bool), addr: t.Addr(i)}
			list = append(list, m)
			wg.Go(func() { m.err = m.scan(ctx, t, i, before, begins, most) })
		}
	}
	wg.Wait()
	return list
}

// Reasons for an incomplete scan.
var (
	errCutOff   = errors.New("it has more names; see --most")
	errTimedOut = errors.New("it has more keys than could be scanned in time; see --timeout")
)

// scan scans one master. before is the common beginning of the keys of all locks.
func (m *scanned) scan(ctx context.Context, t *transport.Transport, i int, before, begins string, most int) error {
	pattern := globText.Replace(before+begins) + "*}"
	cursor, failures := "0", 0
	for {
		began := time.Now()
		next, keys, err := nextKeys(ctx, t, i, cursor, pattern)
		switch {
		// A busy master may answer a step too late. The cursor is still valid when the master is connected again.
		case err != nil && cursor != "0" && !transport.Answered(err) && failures < scanFailures && pause(ctx, scanRetry):
			failures++
			continue
		case err != nil:
			return err
		}
		failures = 0
		for _, key := range keys {
			name := strings.TrimSuffix(strings.TrimPrefix(key, before), "}")
			if scripts.CheckName(name) == nil { // otherwise the key is from another program
				m.names[name] = true
			}
		}
		switch cursor = next; {
		case cursor == "0":
			return nil
		case len(m.names) >= most:
			return errCutOff
		case !pause(ctx, max(scanPause, 20*time.Since(began))):
			return context.Cause(ctx)
		}
	}
}

// pause waits for d, and reports whether d has passed before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// globText escapes the special characters of a pattern.
var globText = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)

// nextKeys runs one step of a scan.
func nextKeys(ctx context.Context, t *transport.Transport, i int, cursor, pattern string) (string, []string, error) {
	list, err := redis.Values(ask(ctx, t, i, frame.New(scan).With(cursor, pattern, strconv.Itoa(scanStep))))
	var next string
	var keys []string
	if err == nil {
		_, err = redis.Scan(list, &next, &keys)
	}
	return next, keys, err
}

// ask sends a call to a master, and returns the reply.
func ask(ctx context.Context, t *transport.Transport, i int, call *frame.Call) (any, error) {
	came := make(reply, 1)
	if err := t.Send(i, call, transport.Stamp{}, came); err != nil {
		return nil, err
	}
	select {
	case r := <-came:
		return r.value, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A reply receives the reply to a call.
type reply chan struct {
	value any
	err   error
}

// Reply implements transport.Receiver.
func (to reply) Reply(_ int, value any, err error) {
	to <- struct {
		value any
		err   error
	}{value, err}
}

// sets returns the addresses of the masters of each shard: one set, or two while the masters are changed.
func (c *client) sets() (list [][]string) {
	for _, one := range c.Admin().Configuration() {
		list = append(list, one.Masters)
		if len(one.Next) > 0 {
			list = append(list, one.Next)
		}
	}
	return list
}

// majority reports whether addrs contains a majority of a set.
func majority(set, addrs []string) bool {
	n := 0
	for _, addr := range addrs {
		if slices.Contains(set, addr) {
			n++
		}
	}
	return n > len(set)/2
}

// held is a name with the masters that hold it.
type held struct {
	Name string `json:"name"`
	On   int    `json:"on"`
}

// holders returns the masters that have each name.
func holders(found []*scanned) map[string][]string {
	on := make(map[string][]string)
	for _, m := range found {
		for name := range m.names {
			on[name] = append(on[name], m.addr)
		}
	}
	return on
}

// isHeld reports whether a majority of a set is in addrs. One set is enough, since a client that has not noticed a
// change yet holds its locks on one set alone.
func isHeld(sets [][]string, addrs []string) bool {
	return slices.ContainsFunc(sets, func(set []string) bool { return majority(set, addrs) })
}

// showHeld prints the results of scanning the masters of the sets.
func showHeld(con *console, found []*scanned, sets [][]string, all bool) error {
	code, asked := exitDone, []string(nil)
	for _, m := range found {
		if m.err == nil || errors.Is(m.err, errCutOff) {
			asked = append(asked, m.addr)
		}
		if m.err != nil {
			con.complain(fmt.Errorf("redlock ls: the list is partial: %s: %w", m.addr, m.err))
			code = exitDanger
		}
	}
	if slices.ContainsFunc(sets, func(set []string) bool { return !majority(set, asked) }) {
		code = exitNoQuorum
	}
	names, text := []held{}, new(strings.Builder)
	on := holders(found)
	for _, name := range slices.Sorted(maps.Keys(on)) {
		if !all && !isHeld(sets, on[name]) {
			continue
		}
		names = append(names, held{name, len(on[name])})
		if all {
			fmt.Fprintf(text, "%d of %d  ", len(on[name]), len(found))
		}
		if q := strconv.Quote(name); q != `"`+name+`"` {
			name = q
		}
		fmt.Fprintln(text, name)
	}
	con.result(map[string]any{"names": names, "masters": len(found), "complete": code == exitDone}, text.String())
	return leave(code)
}
