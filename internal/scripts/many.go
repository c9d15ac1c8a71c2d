package scripts

import (
	"bytes"
	"cmp"
)

// MostTogether is how many calls one run of [Many] makes at the most: others wait for it as long as for as many calls.
const MostTogether = 32

// The places in the arguments of an acquire and a release; what is behind them is left out by most.
const (
	acquireLock, acquireMarker, acquireID, acquireTTL, acquireBallot, acquireRest = 2, 4, 6, 7, 8, 9
	releaseLock, releaseMarker, releaseID, releaseBallot, releaseGives            = 2, 6, 8, 9, 10
)

// A Group is a row of calls that [Many] can make together: acquires of one ballot each and releases of one hold each, which
// are the same but for the name, the hold and the ballot. The zero value is an empty one.
type Group struct {
	calls []*Call
	// What is the same in all that have it; nil where none has.
	marker, ttl, rest, gives any

	kinds []byte // MostTogether of them
	boxed any    // kinds as an argument
}

// Reset empties the group.
func (g *Group) Reset() {
	clear(g.calls)
	*g = Group{calls: g.calls[:0], kinds: g.kinds, boxed: g.boxed}
}

// Add puts c behind the others and reports whether it could be.
func (g *Group) Add(c *Call) bool {
	if len(g.calls) == MostTogether || c == nil || c.Stamp == 0 {
		return false
	}
	next := *g
	same := func(of *any, this any) bool {
		if *of == nil {
			*of = this
		}
		return *of == this
	}
	switch args := c.Args; {
	case c.Script == Acquire && (len(args) == acquireRest || len(args) == acquireRest+1):
		rest := anyEmpty
		if len(args) > acquireRest {
			rest = args[acquireRest]
		}
		if !same(&next.marker, args[acquireMarker]) || !same(&next.ttl, args[acquireTTL]) || !same(&next.rest, rest) {
			return false
		}
	case c.Script == Release && (len(args) == releaseGives || len(args) == releaseGives+1):
		gives := anyEmpty
		if len(args) > releaseGives {
			gives = args[releaseGives]
		}
		if args[releaseID] == anyEmpty || !same(&next.marker, args[releaseMarker]) || !same(&next.gives, gives) {
			return false // what ends no hold may find no memory for what it gives, as an acquire may
		}
	default:
		return false
	}
	*g = next
	g.calls = append(g.calls, c)
	return true
}

// AppendArgs appends what follows the word EVALSHA to args: the SHA-1, the number of keys, the keys, the arguments. stamp
// is the marker that the connection expects. What it appends is valid until the next call.
func (g *Group) AppendArgs(args []any, stamp any) []any {
	args = append(args, Many.sha, 1+len(g.calls), g.marker)
	if g.kinds == nil {
		g.kinds = bytes.Repeat([]byte{'-'}, MostTogether)
		g.boxed = g.kinds
	}
	for i, c := range g.calls {
		if c.Script == Acquire {
			g.kinds[i] = 'a'
			args = append(args, c.Args[acquireLock])
		} else {
			g.kinds[i] = 'r'
			args = append(args, c.Args[releaseLock])
		}
	}
	args = append(args, stamp, cmp.Or(g.ttl, anyZero), g.boxed, cmp.Or(g.rest, anyEmpty), cmp.Or(g.gives, anyEmpty))
	for _, c := range g.calls {
		if c.Script == Acquire {
			args = append(args, c.Args[acquireID], c.Args[acquireBallot])
		} else {
			args = append(args, c.Args[releaseID], c.Args[releaseBallot])
		}
	}
	return args
}
