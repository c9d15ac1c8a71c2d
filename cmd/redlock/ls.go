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

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

//go:embed ls.lua
var scanText string

// scan is one step through the keys of a master. A test checks the SHA-1.
var scan = &scripts.Script{Name: "scan", SHA: "689fa927dc00a120a9a5763cd4628ecf9fc1a5e7", Text: scanText}

// Pace of a scan: each step examines about scanStep keys, which takes some 0.2 ms of the master's time. A pause
// follows, of at least scanPause and at least twenty times the duration of the step.
const (
	scanStep  = 250
	scanPause = 5 * time.Millisecond

	scanFailures = 5                      // how often a step is repeated
	scanRetry    = 500 * time.Millisecond // pause before that
)

func (a *app) lsCommand() *cobra.Command {
	var all bool
	var most int
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "ls [URL...] [PREFIX]",
		Short: "list the names that are held",
		Long: `Lists the names that are held now, on a quorum of the masters, in order; with PREFIX only those that begin so.
Writes nothing. With --all also the names that fewer masters have: locks that are being taken or given back, and what
is left of holders that have died. Names with unusual characters are quoted.

It goes through all keys of all masters (SCAN), some 250 at a time with pauses, so that a busy master does not feel
it: about 50 000 keys a second at the most. Names that are taken or given back meanwhile may be missing. It ends
after --timeout, or --most names of a master. A restricted user needs the right +scan besides.

Exit status: 0; 1 if the list may lack names because it was cut off, or because a minority of the masters could not
be asked; 2 if fewer than a quorum could be asked.`,
		Example: `  redlock ls --config locks.json orders:
  redlock ls --json | jq -r '.names[].name'`,
		Args: func(cmd *cobra.Command, args []string) error {
			_, names := cutURLs(args)
			return errors.Join(cobra.MaximumNArgs(1)(cmd, names), checkNames(names))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			urls, names := cutURLs(args)
			c, err := a.deployment.readDeployment(cmd, urls)
			if err == nil && most < 1 {
				err = fmt.Errorf("--most %d: 1 is the least", most)
			}
			if err != nil {
				return wrongCall(cmd, err)
			}
			// A Locker checks the options, finds the masters of a set, and waits for them.
			l, pools, shut, err := a.openPools(c, observer)
			if err != nil {
				return wrongCall(cmd, err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			defer shut(ctx)
			private.Of(l).Settle(ctx)
			found := scanAll(ctx, scans(c, pools, strings.Join(names, ""), most))
			return leave(a.list(found, sets(c), all))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	//mutant:ls-timeout -> cmd.Flags().DurationVar(&a.deployment.timeout, "timeout", time.Minute, "")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "bound on the whole command")
	cmd.Flags().BoolVar(&all, "all", false, "include names that no quorum has")
	cmd.Flags().IntVar(&most, "most", 1_000_000, "maximum number of names of one master")
	return cmd
}

// A scanning scans the keys of all masters.
type scanning struct {
	masters        *transport.Transport
	prefix, begins string
	most           int
}

// scans returns a scan of each pool, for names that begin so.
func scans(c *configfile.Config, pools []*pool.Pool, begins string, most int) (list []*scanning) {
	for _, p := range pools {
		t := p.Transport()
		list = append(list, &scanning{masters: t, prefix: c.Prefix + t.Bucket().Tag(), begins: begins, most: most})
	}
	return list
}

// scanAll runs scans concurrently.
func scanAll(ctx context.Context, scans []*scanning) []scanned {
	found := make([][]scanned, len(scans))
	var wg sync.WaitGroup
	for i, s := range scans {
		wg.Go(func() { found[i] = s.all(ctx) })
	}
	wg.Wait()
	return slices.Concat(found...)
}

// A scanned is the result of scanning one master.
type scanned struct {
	names map[string]bool
	addr  string
	err   error // why the scan is incomplete
}

// Reasons for an incomplete scan.
var (
	errCutOff   = errors.New("it has more names; see --most")
	errTimedOut = errors.New("it has more keys than could be scanned in time; see --timeout")
)

// all scans all masters concurrently.
func (s *scanning) all(ctx context.Context) []scanned {
	list := make([]scanned, s.masters.N())
	var wg sync.WaitGroup
	for i := range list {
		wg.Go(func() {
			list[i] = scanned{names: make(map[string]bool), addr: s.masters.Addr(i)}
			list[i].err = s.master(ctx, i, list[i].names)
		})
	}
	wg.Wait()
	return list
}

// master scans one master.
func (s *scanning) master(ctx context.Context, i int, names map[string]bool) error {
	before, pattern := s.prefix+":{", globText.Replace(s.prefix+":{"+s.begins)+"*}"
	cursor, failures := "0", 0
	for {
		began := time.Now()
		next, keys, err := s.step(ctx, i, cursor, pattern)
		// A busy master may answer a step too late. The cursor is still valid when it is connected again.
		if err != nil && cursor != "0" && !transport.Answered(err) && failures < scanFailures && s.pause(ctx, scanRetry) {
			failures++
			continue
		}
		if err != nil {
			return err
		}
		failures = 0
		for _, key := range keys {
			name := strings.TrimSuffix(strings.TrimPrefix(key, before), "}")
			if scripts.CheckName(name) == nil { // otherwise the key is from another program
				names[name] = true
			}
		}
		switch cursor = next; {
		case cursor == "0":
			return nil
		case len(names) >= s.most:
			return errCutOff
		}
		if !s.pause(ctx, max(scanPause, 20*time.Since(began))) {
			return errTimedOut
		}
	}
}

// pause waits for d, and reports false if ctx has ended before that.
func (s *scanning) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// globText escapes the special characters of a pattern.
var globText = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)

// step runs one step of a scan.
func (s *scanning) step(ctx context.Context, i int, cursor, pattern string) (next string, keys []string, err error) {
	came := make(stepReply, 1)
	call := scripts.NewCall(scan, nil, cursor, pattern, strconv.Itoa(scanStep))
	if err := s.masters.Send(i, call, transport.Stamp{}, came); err != nil {
		return "", nil, err
	}
	select {
	case r := <-came:
		list, err := redis.Values(r.value, r.err)
		if err == nil {
			_, err = redis.Scan(list, &next, &keys)
		}
		return next, keys, err
	case <-ctx.Done():
		return "", nil, errTimedOut
	}
}

// stepReply receives the reply to a step.
type stepReply chan struct {
	value any
	err   error
}

// Reply implements transport.Receiver.
func (to stepReply) Reply(_ int, value any, err error) {
	to <- struct {
		value any
		err   error
	}{value, err}
}

// sets returns the addresses of the masters of each shard: one set, or two while the masters are changed.
func sets(c *configfile.Config) (list []map[string]bool) {
	all := [][]string{c.Masters, c.Next}
	for _, g := range c.Shards {
		all = append(all, g.Masters, g.Next)
	}
	for _, urls := range all {
		buckets := 0
		for _, u := range urls {
			buckets = max(buckets, transport.URL(u).Buckets())
		}
		for bucket := range max(buckets, 1) {
			set := make(map[string]bool)
			for _, u := range urls {
				name := transport.URL(u).Name
				if transport.URL(u).Buckets() > 0 {
					name += transport.Bucket{Number: bucket + 1, Of: buckets}.Tag()
				}
				set[name] = true
			}
			if len(set) > 0 {
				list = append(list, set)
			}
		}
	}
	return list
}

// majority reports whether addrs contains a majority of a set.
func majority(set map[string]bool, addrs []string) bool {
	n := 0
	for _, addr := range addrs {
		if set[addr] {
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

// list prints the results of scanning the masters of the sets.
func (a *app) list(found []scanned, sets []map[string]bool, all bool) (code int) {
	on, asked := make(map[string][]string), []string(nil)
	for _, m := range found {
		if m.err == nil || errors.Is(m.err, errCutOff) {
			asked = append(asked, m.addr)
		}
		if m.err != nil {
			a.complain(fmt.Errorf("redlock ls: the list is partial: %s: %w", m.addr, m.err))
			code = exitDanger
		}
		for name := range m.names {
			on[name] = append(on[name], m.addr)
		}
	}
	names := make([]held, 0, len(on))
	for _, name := range slices.Sorted(maps.Keys(on)) {
		// A client that has not noticed a change yet holds the lock on one set alone.
		if all || slices.ContainsFunc(sets, func(s map[string]bool) bool { return majority(s, on[name]) }) {
			names = append(names, held{name, len(on[name])})
		}
	}
	if slices.ContainsFunc(sets, func(s map[string]bool) bool { return !majority(s, asked) }) {
		code = exitNoQuorum
	}
	if a.json {
		a.encode(a.stdout, map[string]any{"names": names, "masters": len(found), "complete": code == exitDone})
		return code
	}
	for _, n := range names {
		text := n.Name
		if q := strconv.Quote(text); q != `"`+text+`"` {
			text = q
		}
		if all {
			text = fmt.Sprintf("%d of %d  %s", n.On, len(found), text)
		}
		fmt.Fprintln(a.stdout, text)
	}
	return code
}
