package master

import (
	"slices"
	"strings"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A Part is one script that a call runs, with its keys and arguments.
type Part struct {
	Script     *scripts.Script
	Keys, Args []string
}

// Parts are the scripts that one stands for: itself, or those that are run together. It panics where words are missing.
func Parts(one *scripts.Script, keys, args []string) []Part {
	if one != scripts.Many {
		return []Part{{one, keys, args}}
	}
	const known, ttl, kinds, rest, gives, first = 0, 1, 2, 3, 4, 5
	marker, parts := keys[0], make([]Part, len(keys)-1)
	for i, lock := range keys[1:] {
		stem := strings.TrimSuffix(lock, "lock")
		id, ballot := args[first+2*i], args[first+2*i+1]
		if args[kinds][i] == 'a' {
			parts[i] = Part{scripts.Acquire, []string{lock, stem + "bar", marker}, []string{args[known], id, args[ttl], ballot, args[rest]}}
			continue
		}
		words := []string{args[known], id, ballot, args[gives]}
		if words[3] == "" {
			words = words[:3]
		}
		parts[i] = Part{scripts.Release, []string{lock, stem + "bar", stem + "queue", stem + "alive", marker}, words}
	}
	return parts
}

// many runs acquires and releases one after the other.
func (c *call) many() any {
	if len(c.keys) == 0 || len(c.args) < 5+2*(len(c.keys)-1) || len(c.args[2]) < len(c.keys)-1 {
		panic(badArgument)
	}
	known := c.arg(1)
	v := c.state.lookup(c.now, c.key(1))
	proved := v.Type == String && v.Text == known
	replies := []any{}
	for _, p := range Parts(scripts.Many, c.keys, c.args) {
		if p.Script == scripts.Acquire && proved {
			p.Args = slices.Concat([]string{""}, p.Args[1:])
		}
		reply, out := c.state.Eval(c.now, c.env, p.Script, p.Keys, p.Args)
		replies, c.out = append(replies, reply), append(c.out, out...)
	}
	return replies
}
