package main

import (
	"context"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/floor"
)

// A contender is one implementation of a lock over the masters. Its methods are safe for concurrent use.
type contender interface {
	// lock waits until it has acquired the lock, fails, or ctx ends.
	lock(ctx context.Context, name string) (held, error)
	// close sends pending requests until ctx ends, and closes the connections.
	close(ctx context.Context) error
}

// A held lock must be released once. The contender decides how many confirmations Unlock waits for.
type held interface {
	Unlock(ctx context.Context) error
}

// A setting holds what a contender needs to open. It is also sent to worker processes.
type setting struct {
	URLs   []string
	Prefix string // prefix of all keys
}

// lockTTL is the TTL of every measured lock.
const lockTTL = 10 * time.Second

// peerTimeout is the time after which connections of the peers give up a reply. Without it they would wait for a hung
// master until it resumes.
const peerTimeout = 500 * time.Millisecond

// An entrant describes a contender.
type entrant struct {
	name     string
	open     func(ctx context.Context, s setting) (contender, error)
	wire     []string // commands that the client sends, as named by INFO commandstats; not those of its scripts
	waits    bool     // it can wait for a held name; the others do not contend
	majority bool     // a majority of the masters holds its locks; the others meet no faults
	reuse    bool     // each goroutine locks the same 16 names in turn
}

// Names of contenders that targets and plots refer to.
const (
	nameLibrary = "library"
	nameAsync   = "library/async"
	nameLinger  = "library/linger"
	nameFloor   = "floor"
	nameRedigo  = "redsync/redigo"
	nameRueidis = "redsync/rueidis"
)

var (
	libraryWire = []string{"evalsha", "eval", "subscribe", "unsubscribe"}
	redsyncWire = []string{"set", "evalsha", "eval"}
)

// entrants lists all contenders, in the order of the tables.
var entrants = []entrant{
	{nameLibrary, openLibrary(), libraryWire, true, true, false},
	{nameAsync, openLibrary(asyncUnlock), libraryWire, false, false, false},
	{nameLinger, openLibrary(linger), libraryWire, false, false, true},
	{nameFloor, openFloor, []string{"evalsha"}, false, true, false},
	{nameRedigo, openRedsync(redigoPool, false), redsyncWire, true, true, false},
	{nameRueidis, openRedsync(rueidisPool, false), redsyncWire, false, true, false},
	{"rueidislock", openRueidislock, []string{"evalsha", "eval"}, true, false, false},
	{nameRedigo + "/fail-fast", openRedsync(redigoPool, true), redsyncWire, false, true, false},
	{nameRueidis + "/fail-fast", openRedsync(rueidisPool, true), redsyncWire, false, true, false},
}

// Contenders of a run without -impl, and of a short one.
var usual, usualShort = strings.Join(names(entrants[:7]), ","), strings.Join(names(entrants[:5]), ",")

func names(list []entrant) (names []string) {
	for _, e := range list {
		names = append(names, e.name)
	}
	return names
}

// closeBound is the maximum time to close a contender, which may have many locks to release, or to end a fault.
const closeBound = 20 * time.Second

// shut closes a contender, even if ctx has ended.
func shut(ctx context.Context, c contender) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
	defer cancel()
	return c.close(ctx)
}

// floorContender is package floor as a contender.
type floorContender struct{ *floor.Floor }

func openFloor(ctx context.Context, s setting) (contender, error) {
	f, err := floor.Dial(ctx, s.URLs, s.Prefix, lockTTL)
	return floorContender{f}, err
}

func (f floorContender) lock(_ context.Context, name string) (held, error) {
	return f.Floor.Lock(name)
}

// close ignores errors, because a fault may have ended a connection.
func (f floorContender) close(context.Context) error {
	_ = f.Close()
	return nil
}
