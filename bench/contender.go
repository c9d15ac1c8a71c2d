package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/floor"
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
	open func(ctx context.Context, s setting, fail func(error)) (contender, error)
	// suffix is what the keys of its locks end with, "" where it has no other keys under its prefix.
	suffix string
	// does is what it does beyond, or short of, the others, for the reader of the tables.
	does string
	// oneServer: it locks on the first master alone.
	oneServer bool
	// peer: it is not of this project.
	peer bool
	// foreign: it sends what the masters in memory do not know, which run the library's scripts alone.
	foreign bool
	// extends: its held locks are extenders.
	extends bool
	// pairsOnly: it does not wait for a name that is held, so it takes no part in what is about waiting.
	pairsOnly bool
}

// The names of the contenders, which the report uses as well.
const (
	nameLibrary = "library"
	nameDirect  = "floor/direct"
	nameQueued  = "floor/queued"
)

// entrants lists all contenders that there are, in the order of the tables.
var entrants = []entrant{
	{
		name: nameLibrary, wire: []string{"evalsha", "eval", "subscribe", "unsubscribe"}, suffix: ":lock", open: openLibrary, extends: true,
		does: "re-entry, fencing tokens, restart guard, queues and hints, extension; undoes late acquires",
	},
	floorEntrant(nameDirect, directFloor, floorDoes),
	floorEntrant(nameQueued, queuedFloor, floorDoes),
	floorEntrant("plain floor/direct", directPlain, plainDoes),
	floorEntrant("plain floor/queued", queuedPlain, plainDoes),
	redsyncEntrant("redsync/redigo", redigoPools),
	redsyncEntrant("redsync/go-redis", goredisPools),
	redsyncEntrant("redsync/rueidis", rueidisPools),
	redsyncFastEntrant("redsync/redigo"+failFast, redigoPools),
	redsyncFastEntrant("redsync/go-redis"+failFast, goredisPools),
	redsyncFastEntrant("redsync/rueidis"+failFast, rueidisPools),
	{
		name: "rueidislock" + oneServer, wire: []string{"evalsha", "eval", "mget"}, open: openRueidislock, oneServer: true, peer: true, foreign: true,
		does: "one server, no majority; extension, waiters told by client-side caching",
	},
	{
		name: "redislock" + oneServer, wire: []string{"evalsha", "eval"}, open: openRedislock, oneServer: true, peer: true, foreign: true, extends: true,
		does: "one server, no majority; SET NX and compare-and-delete, polling",
	},
}

const (
	failFast  = ", fail fast"
	oneServer = " (one server)"

	floorDoes   = "the library's two scripts over the same five connections, nothing else; does not wait, survives no fault"
	plainDoes   = "SET NX and compare-and-delete over five connections, nothing else; no tokens, no guard, no re-entry"
	redsyncDoes = "SET NX and compare-and-delete, polling; no tokens, no guard, no re-entry, no extension of its own"
)

func floorEntrant(name string, cfg floor.Config, does string) entrant {
	return entrant{name: name, wire: []string{"evalsha", "set"}[:wires(cfg)], suffix: ":lock", open: floorOpener(cfg), pairsOnly: true, foreign: cfg.Plain, does: does}
}

// wires is how many kinds of commands a floor sends itself: in the library's scripts SET is the script's own.
func wires(cfg floor.Config) int {
	if cfg.Plain {
		return 2
	}
	return 1
}

func redsyncEntrant(name string, connect redsyncPools) entrant {
	return entrant{
		name: name, wire: []string{"set", "evalsha", "eval"}, open: redsyncOpener(connect, false), peer: true, foreign: true, extends: true,
		does: redsyncDoes + "; waits for all answers",
	}
}

func redsyncFastEntrant(name string, connect redsyncPools) entrant {
	return entrant{
		name: name, wire: []string{"set", "evalsha", "eval"}, open: redsyncOpener(connect, true), peer: true, foreign: true, extends: true,
		does: redsyncDoes + "; returns with the majority's answers, and leaves keys behind",
	}
}

func entrantNamed(name string) (entrant, error) {
	i := slices.IndexFunc(entrants, func(e entrant) bool { return e.name == name })
	if i < 0 {
		return entrant{}, fmt.Errorf("bench: there is no contender %q", name)
	}
	return entrants[i], nil
}

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
