package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// A setting is what a contender is opened with. It travels to worker processes as JSON.
type setting struct {
	URLs   []string `json:"urls"`
	Prefix string   `json:"prefix"` // of all keys
	Fair   bool     `json:"fair"`   // waiters are served in order
	// Priority is that of every lock taken; 0 is the usual one.
	Priority int `json:"priority"`
	// Rounds: the library counts its rounds. Telling of each costs a little.
	Rounds bool `json:"rounds"`
}

// An entrant describes a contender.
type entrant struct {
	name string
	// wire lists the commands that it sends itself, as commandstats spells them; others that a server counts are run by
	// scripts.
	wire []string
	// open connects it.
	open func(ctx context.Context, s setting) (contender, error)
	// suffix is what the keys of its locks end with, "" where it has no other keys under its prefix.
	suffix string
	// does is what it does beyond, or short of, the others, for the reader of the tables.
	does string
	// peer: it is not of this project.
	peer bool
	// pairsOnly: it neither waits for a name that is held nor extends.
	pairsOnly bool
}

// The names of the contenders, which the report uses as well.
const (
	nameLibrary = "library"
	nameFloor   = "floor"
	nameRedsync = "redsync/redigo"
	failFast    = ", fail fast"
)

// entrants lists all contenders that there are, in the order of the tables.
var entrants = []entrant{
	{
		name: nameLibrary, wire: []string{"evalsha", "eval", "subscribe", "unsubscribe"}, suffix: ":lock", open: openLibrary,
		does: "re-entry, fencing tokens, restart guard, queues and hints, extension; undoes late acquires",
	},
	{
		name: nameFloor, wire: []string{"evalsha"}, open: openFloor, pairsOnly: true,
		does: "a hash with a time to live, and a release that publishes; no tokens, no guard, no queue, no undoing",
	},
	redsyncEntrant(nameRedsync, redigoPools, false),
	redsyncEntrant("redsync/rueidis", rueidisPools, false),
	redsyncEntrant(nameRedsync+failFast, redigoPools, true),
	redsyncEntrant("redsync/rueidis"+failFast, rueidisPools, true),
}

func redsyncEntrant(name string, connect redsyncPools, fast bool) entrant {
	does := "SET NX and compare-and-delete, polling; no tokens, no guard, no re-entry, no extension of its own; "
	if fast {
		does += "returns with the majority's answers, and leaves keys behind"
	} else {
		does += "waits for all answers"
	}
	wire := []string{"set", "evalsha", "eval"}
	return entrant{name: name, wire: wire, open: redsyncOpener(connect, fast), peer: true, does: does}
}

func entrantNamed(name string) (entrant, error) {
	i := slices.IndexFunc(entrants, func(e entrant) bool { return e.name == name })
	if i < 0 {
		return entrant{}, fmt.Errorf("bench: there is no contender %q", name)
	}
	return entrants[i], nil
}

// theLibrary is its entrant.
var theLibrary = entrants[0]

// slug is a name as it can stand in a key.
func slug(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" ,/()", r) {
			return '-'
		}
		return r
	}, name)
}

// closeBound is the most that a contender may take to close.
const closeBound = 10 * time.Second

func closeAll(ctx context.Context, list ...contender) error {
	var errs []error
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
	defer cancel()
	for _, c := range list {
		if c != nil {
			errs = append(errs, c.close(ctx))
		}
	}
	return errors.Join(errs...)
}
