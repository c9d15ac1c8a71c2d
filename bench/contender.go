package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/bench/floor"
	"github.com/redlock-go/redlock/redlock"
)

// A contender is one implementation of a lock over the masters.
type contender interface {
	// caller returns a caller for one goroutine.
	caller() caller
	// close sends pending requests until ctx ends, and closes the connections.
	close(ctx context.Context) error
}

// A caller is used by one goroutine.
type caller interface {
	// tryLock makes one attempt. lock waits until it has acquired the lock or ctx ends.
	tryLock(ctx context.Context, name string) (held, error)
	lock(ctx context.Context, name string) (held, error)
}

// A held lock must be released once. The contender decides how many confirmations Unlock waits for.
type held interface {
	Unlock(ctx context.Context) error
}

// A setting holds the parameters for opening a contender. They are also sent to worker processes.
type setting struct {
	URLs     []string
	Names    []string // names of the masters in the admission records, if URLs are those of proxies
	Prefix   string   // prefix of all keys
	Fair     bool     // serve waiters in order
	Priority int      // priority of every lock; 0 is the default
	Rounds   bool     // count the rounds of each acquire, which costs some time; library only
}

// An entrant describes a contender.
type entrant struct {
	name      string
	wire      []string // commands that the client sends, as named by INFO commandstats; not those of its scripts
	open      func(ctx context.Context, s setting) (contender, error)
	suffix    string // suffix of its lock keys; "" if all keys under its prefix are lock keys
	peer      bool   // the contender is from another project
	pairsOnly bool   // the contender cannot wait for a held name
	variant   bool   // a variant of another contender, measured only in pairs
}

// Names of the contenders, also used in the report.
const (
	nameLibrary = "library"
	nameAsync   = "library/async"
	nameLinger  = "library/linger"
	nameFloor   = "floor"
	nameScripts = "floor/library scripts"
	nameIdeal   = "local mutex"
	nameRedsync = "redsync/redigo"
	failFast    = ", fail fast"
)

// entrants lists all contenders, in the order of the tables.
var entrants = []entrant{
	{name: nameLibrary, wire: libraryWire, suffix: "}", open: openLibrary},
	{name: nameAsync, wire: libraryWire, suffix: "}", open: openWith(redlock.WithAsyncUnlock()), pairsOnly: true,
		variant: true},
	{name: nameLinger, wire: libraryWire, suffix: "}", open: openWith(redlock.WithLinger(lockTTL)), pairsOnly: true,
		variant: true},
	{name: nameFloor, wire: []string{"evalsha"}, open: floorOpener(floor.Dial), pairsOnly: true},
	{name: nameScripts, wire: []string{"evalsha"}, open: floorOpener(floor.DialLibrary), pairsOnly: true, variant: true},
	{name: nameRedsync, wire: redsyncWire, open: redsyncOpener(redigoPools, false), peer: true},
	{name: "redsync/rueidis", wire: redsyncWire, open: redsyncOpener(rueidisPools, false), peer: true},
	{name: nameRedsync + failFast, wire: redsyncWire, open: redsyncOpener(redigoPools, true), peer: true},
	{name: "redsync/rueidis" + failFast, wire: redsyncWire, open: redsyncOpener(rueidisPools, true), peer: true},
}

func entrantNamed(name string) (entrant, error) {
	i := slices.IndexFunc(entrants, func(e entrant) bool { return e.name == name })
	if i < 0 {
		return entrant{}, fmt.Errorf("bench: unknown contender %q", name)
	}
	return entrants[i], nil
}

// slug returns name in a form that can be a part of a key.
func slug(name string) string { return strings.NewReplacer(" ", "-", ",", "-", "/", "-").Replace(name) }

// closeBound is the maximum time to close a contender, which may have many locks to release.
const closeBound = 20 * time.Second

// shut closes a contender, even if ctx has ended.
func shut(ctx context.Context, c contender) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
	defer cancel()
	return c.close(ctx)
}

// ideal is a mutex in this process as a contender. Its rate is an upper bound for a lock over a network.
type ideal struct{ mu sync.Mutex }

func (i *ideal) caller() caller { return i }

func (i *ideal) tryLock(ctx context.Context, name string) (held, error) { return i.lock(ctx, name) }

func (i *ideal) lock(context.Context, string) (held, error) {
	i.mu.Lock()
	return i, nil
}

// Unlock implements held.
func (i *ideal) Unlock(context.Context) error {
	i.mu.Unlock()
	return nil
}

func (i *ideal) close(context.Context) error { return nil }
