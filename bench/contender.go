package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A contender is one way to lock over the masters.
type contender interface {
	// caller returns what one goroutine locks with.
	caller() caller
	// close ends its connections; ctx bounds what it may still have to send.
	close(ctx context.Context) error
}

// A caller is used by one goroutine.
type caller interface {
	// tryLock makes one attempt, lock waits until ctx ends.
	tryLock(ctx context.Context, name string) (held, error)
	lock(ctx context.Context, name string) (held, error)
}

// A held lock is released once. Unlock returns with the word of as many masters as the contender waits for.
type held interface {
	Unlock(ctx context.Context) error
}

// A setting is what a contender is opened with. It travels to worker processes.
type setting struct {
	URLs     []string
	Names    []string // of the masters, if the URLs are those of proxies; admission records have them
	Prefix   string   // of all keys
	Fair     bool     // waiters are served in order
	Priority int      // of every lock taken; 0 is the usual one
	Rounds   bool     // the library counts its rounds, which costs a little
}

// An entrant describes a contender.
type entrant struct {
	name      string
	wire      []string // the commands that it sends itself, as commandstats spells them; others are run by scripts
	open      func(ctx context.Context, s setting) (contender, error)
	suffix    string // what the keys of its locks end with, "" where it has no other keys under its prefix
	peer      bool   // it is not of this project
	pairsOnly bool   // it does not wait for a name that is held
}

// The names of the contenders, which the report uses as well.
const (
	nameLibrary = "library"
	nameFloor   = "floor"
	nameIdeal   = "local mutex"
	nameRedsync = "redsync/redigo"
	failFast    = ", fail fast"
)

// entrants lists all contenders that there are, in the order of the tables.
var entrants = []entrant{
	{name: nameLibrary, wire: libraryWire, suffix: "}", open: openLibrary},
	{name: nameFloor, wire: []string{"evalsha"}, open: openFloor, pairsOnly: true},
	{name: nameRedsync, wire: redsyncWire, open: redsyncOpener(redigoPools, false), peer: true},
	{name: "redsync/rueidis", wire: redsyncWire, open: redsyncOpener(rueidisPools, false), peer: true},
	{name: nameRedsync + failFast, wire: redsyncWire, open: redsyncOpener(redigoPools, true), peer: true},
	{name: "redsync/rueidis" + failFast, wire: redsyncWire, open: redsyncOpener(rueidisPools, true), peer: true},
}

func entrantNamed(name string) (entrant, error) {
	i := slices.IndexFunc(entrants, func(e entrant) bool { return e.name == name })
	if i < 0 {
		return entrant{}, fmt.Errorf("bench: there is no contender %q", name)
	}
	return entrants[i], nil
}

// slug is a name as it can stand in a key.
func slug(name string) string { return strings.NewReplacer(" ", "-", ",", "-", "/", "-").Replace(name) }

// closeBound is the most that a contender may take to close: it may have very many locks to release.
const closeBound = 20 * time.Second

// shut closes a contender, even where ctx has ended.
func shut(ctx context.Context, c contender) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
	defer cancel()
	return c.close(ctx)
}

// The ideal is a mutex of one process: what no lock over a network can beat.
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
