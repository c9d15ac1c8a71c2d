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
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/sharding"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

//go:embed ls.lua
var scanText string

// scan is the script that runs one step of a scan through the keys of a master: it returns the locks that are held.
// A test checks the SHA-1.
var scan = &frame.Script{Name: "scan", SHA: "16a74e6c44fe1120c9ca28cc32ead383656403ca", Text: scanText}

// Pace of a scan: each step examines about scanStep keys, which takes at most about 0.8 ms of the master's time. A
// pause follows, of at least scanPause and at least twenty times the duration of the step.
const (
	scanStep  = 250
	scanPause = 5 * time.Millisecond

	scanFailures = 5                      // maximum number of repetitions of a failed step
	scanRetry    = 500 * time.Millisecond // pause before each repetition
)

func lsCommand(a *app) *cobra.Command {
	var all bool
	var most int
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "ls [URL...] [PREFIX]",
		Short: "list the names that are held",
		Long: `Lists the names that a quorum of the masters holds now, sorted; with PREFIX, only names with this prefix. A
semaphore is listed once, however many slots are held. It
writes nothing. With --all, it also lists names that fewer masters have: locks that are being acquired or released, and
leftovers of holders that have died. Names with unusual characters are quoted.

If masters are in quarantine or cannot be read, they may have forgotten names that clients hold. The command then also
lists each name that is not certainly free, and says so; in JSON, such a name has "unknown".

The command scans all keys of all masters (SCAN), about 250 keys at a time with pauses, and at most about 50 000 keys
per second, so that the scan costs a busy master little. Names that are acquired or released during the scan may be
missing. The scan ends after --timeout, and on each master after --most names. A restricted user also needs the right
+scan.

Exit status: 0 if the list is complete; 1 if names may be missing, because the scan was cut off, or masters are in
quarantine or could not be read; 2 if fewer masters than a quorum could be read.`,
		Example: `  redlock ls --config locks.json orders:
  redlock ls --json | jq -r '.names[].name'`,
		Args: func(_ *cobra.Command, args []string) error {
			_, names := cutURLs(args)
			if err := checkNames(names); err != nil || len(names) <= 1 {
				return err
			}
			return fmt.Errorf("redlock ls: there are %d prefixes: give one", len(names))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			urls, names := cutURLs(args)
			if most < 1 {
				return wrongCall(cmd, fmt.Errorf("--most %d: must be at least 1", most))
			}
			return a.observe(cmd, urls, func(c *client) error {
				ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, errTimedOut)
				defer cancel()
				c.settled(ctx)
				return showHeld(&a.console, c, c.scan(ctx, strings.Join(names, ""), most), all)
			})
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "time limit of the whole command")
	cmd.Flags().BoolVar(&all, "all", false, "also list names that fewer masters than a quorum have")
	cmd.Flags().IntVar(&most, "most", 1_000_000, "number of names after which the scan of a master ends")
	return cmd
}

// A scanned is the result of scanning one master.
type scanned struct {
	names map[string]bool // of a slot, the name that scripts.Slot.Name returns
	shard int             // from 0
	addr  string
	votes bool  // whether the master votes; otherwise it may have forgotten names
	err   error // why the scan is incomplete
}

// keys returns the prefix of the keys on the masters of t.
func (c *client) keys(t *transport.Transport) scripts.Prefix {
	return scripts.Prefix(c.config.Prefix + t.Bucket().Tag())
}

// scan scans the keys of all masters concurrently for names with this prefix. On each master, it ends after most names.
func (c *client) scan(ctx context.Context, prefix string, most int) (list []*scanned) {
	var wg sync.WaitGroup
	var steps atomic.Int64
	for k, t := range c.pools {
		keys := c.keys(t)
		for i := range t.N() {
			m := &scanned{names: make(map[string]bool), shard: k, addr: t.Addr(i)}
			list = append(list, m)
			wg.Go(func() { m.err = m.scan(ctx, t, i, keys, prefix, most, c.set.Clients[k].MastersTime, &steps) })
		}
	}
	end := c.console.progress(func() string {
		return fmt.Sprintf("the scan of %s, about %d keys so far", transport.Count(len(list), "master"),
			steps.Load()*scanStep)
	})
	wg.Wait()
	end()
	shards := shardsOf(admin.Of(c.Locker).Masters()) // after the scan: a master may have lost its data meanwhile
	for _, m := range list {
		m.votes = slices.ContainsFunc(shards[m.shard], func(s redlockinfo.Master) bool {
			return s.Addr == m.addr && s.State == "voting"
		})
	}
	return list
}

// Reasons for an incomplete scan.
var (
	errCutOff   = errors.New("it has more names; see --most")
	errTimedOut = errors.New("it has more keys than could be scanned in time; see --timeout")
)

// scan scans the keys of master i for names with this prefix.
func (m *scanned) scan(
	ctx context.Context, t *transport.Transport, i int, keys scripts.Prefix, prefix string, most int, now func() int64,
	steps *atomic.Int64,
) error {
	pattern := globText.Replace(strings.TrimSuffix(keys.Lock(prefix), "}")) + "*[}0-9]" // a slot ends in a digit
	cursor, failures := "0", 0
	for {
		began := time.Now()
		next, found, err := nextKeys(ctx, t, i, cursor, pattern, now())
		switch {
		// A busy master may answer a step too late. The cursor is still valid when the master is connected again.
		case err != nil && cursor != "0" && !transport.Answered(err) && failures < scanFailures && pause(ctx, scanRetry):
			failures++
			continue
		case err != nil:
			return err
		}
		failures = 0
		steps.Add(1)
		for _, key := range found {
			if name, ours := keys.NameOf(key); ours {
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

// globText escapes the special characters of a glob pattern.
var globText = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)

// nextKeys runs one step of a scan at now, the masters' time in microseconds. It returns the next cursor and the keys
// of the locks that have a lease.
func nextKeys(
	ctx context.Context, t *transport.Transport, i int, cursor, pattern string, now int64,
) (string, []string, error) {
	call := frame.New(scan).With(cursor, pattern, strconv.Itoa(scanStep), strconv.FormatInt(now, 10))
	list, err := redis.Values(ask(ctx, t, i, call))
	var next string
	var keys []string
	if err == nil {
		_, err = redis.Scan(list, &next, &keys)
	}
	return next, keys, err
}

// ask sends a call to master i, and returns the reply.
func ask(ctx context.Context, t *transport.Transport, i int, call *frame.Call) (any, error) {
	came := make(reply, 1)
	if err := t.Send(i, call, transport.Condition{}, came); err != nil {
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

// sets returns, for each shard, the addresses of its masters: one set, or, during a change, the old and the next
// masters.
func (c *client) sets() (list [][][]string) {
	for _, one := range admin.Of(c.Locker).Configuration() {
		sets := [][]string{one.Masters}
		if len(one.Next) > 0 {
			sets = append(sets, one.Next)
		}
		list = append(list, sets)
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

// held is a name with the number of masters that hold it.
type held struct {
	Name    string `json:"name"`
	On      int    `json:"on"`
	Unknown bool   `json:"unknown,omitempty"` // no quorum has the name, but it is not certain that it is free
}

// namesOn returns the masters that have each name.
func namesOn(found []*scanned) map[string][]string {
	on := make(map[string][]string)
	for _, m := range found {
		for name := range m.names {
			on[name] = append(on[name], m.addr)
		}
	}
	return on
}

// isHeld reports whether addrs contains a majority of at least one set. One set is enough, because a client with an
// earlier or later epoch than the others holds its locks on one set alone.
func isHeld(sets [][]string, addrs []string) bool {
	return slices.ContainsFunc(sets, func(set []string) bool { return majority(set, addrs) })
}

// isFree reports whether, in each set of the masters of a shard, a majority votes and does not have the name.
func isFree(found []*scanned, shard int, sets [][]string, name string) bool {
	var without []string
	for _, m := range found {
		if m.votes && m.err == nil && m.shard == shard && !m.names[name] {
			without = append(without, m.addr)
		}
	}
	return !slices.ContainsFunc(sets, func(set []string) bool { return !majority(set, without) })
}

// possible returns the names that are held, and those that are not certainly free, with the number of masters that
// have each. Of a semaphore, it returns the slot that is most certainly held.
func (c *client) possible(found []*scanned) map[string]held {
	list, sets := make(map[string]held), c.sets()
	for full, addrs := range namesOn(found) {
		name, _ := scripts.CutSlot(full)
		shard := sharding.Pick(name, len(c.set.Clients)) - 1
		h := held{name, len(addrs), !isHeld(sets[shard], addrs)}
		other, listed := list[name]
		if (!h.Unknown || !isFree(found, shard, sets[shard], full)) &&
			(!listed || other.Unknown && !h.Unknown || other.Unknown == h.Unknown && other.On < h.On) {
			list[name] = h
		}
	}
	return list
}

// showHeld prints the names that the scan has found.
func showHeld(con *console, c *client, found []*scanned, all bool) error {
	code, unsure := exitDone, 0
	asked := make([][]string, len(c.pools)) // by shard
	var silent, whys []string
	failed := make(map[string][]string) // masters by the reason
	for _, m := range found {
		if m.err == nil || errors.Is(m.err, errCutOff) {
			asked[m.shard] = append(asked[m.shard], m.addr)
		}
		switch {
		case m.err != nil:
			why := strings.TrimPrefix(m.err.Error(), "pool: "+m.addr+": ")
			if failed[why] == nil {
				whys = append(whys, why)
			}
			failed[why], code = append(failed[why], m.addr), exitDanger
		case !m.votes:
			silent, code = append(silent, m.addr), exitDanger
		}
	}
	if err := c.set.WrongList(); err != nil {
		con.complain(fmt.Errorf("redlock ls: %w", err))
	}
	for _, why := range whys {
		con.complain(fmt.Errorf("redlock ls: the list is partial: %s: %s", strings.Join(failed[why], ", "), why))
	}
	if len(silent) > 0 {
		con.complain(fmt.Errorf("redlock ls: the list is partial: %d of %d masters do not vote, and may have forgotten "+
			"names: %s", len(silent), len(found), strings.Join(silent, ", ")))
	}
	for shard, sets := range c.sets() {
		if slices.ContainsFunc(sets, func(set []string) bool { return !majority(set, asked[shard]) }) {
			code = exitNoQuorum
		}
	}
	names, text := []held{}, new(strings.Builder)
	possible := c.possible(found)
	on := make(map[string]int)
	for full, addrs := range namesOn(found) {
		name, _ := scripts.CutSlot(full)
		on[name] = max(on[name], len(addrs))
	}
	for _, name := range slices.Sorted(maps.Keys(on)) {
		h, listed := possible[name]
		switch {
		case listed && h.Unknown:
			unsure++
		case !listed && !all:
			continue
		case !listed:
			h = held{Name: name, On: on[name]}
		}
		names = append(names, h)
		if all {
			fmt.Fprintf(text, "%d of %d  ", h.On, len(found))
		}
		if q := strconv.Quote(name); q != `"`+name+`"` {
			name = q
		}
		fmt.Fprintln(text, name)
	}
	if unsure > 0 {
		con.complain(fmt.Errorf("redlock ls: it is unknown whether clients hold %d of the listed names, which fewer masters "+
			"than a quorum have; redlock who NAME shows the leases", unsure))
	}
	con.result(map[string]any{"names": names, "masters": len(found), "complete": code == exitDone}, text.String())
	return leave(code)
}
