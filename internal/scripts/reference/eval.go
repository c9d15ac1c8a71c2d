package reference

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/scripts"
)

// Env is what a master is besides its keys: what it says of itself in INFO, and who listens.
type Env struct {
	// RunID and ReplID2 are hexadecimal; Offset is second_repl_offset. The zero ReplID2 stands for the 40 zeros and the
	// offset of -1 of a server that was never promoted.
	RunID, ReplID2 string
	Offset         int64
	// Publish delivers a message and returns how many have got it. Below 0 the user may not publish. It is called while
	// the script runs; nil is a master to which nobody listens.
	Publish func(channel, payload string) int
}

// Identity is the server's identity as the admission records have it.
func (e Env) Identity() string {
	replid, offset := e.secondary()
	return e.RunID + "/" + replid + "/" + offset
}

func (e Env) secondary() (replid2, offset string) {
	if e.ReplID2 == "" {
		return strings.Repeat("0", 40), "-1"
	}
	return e.ReplID2, strconv.FormatInt(e.Offset, 10)
}

// An Error is an error reply.
type Error string

// Error returns the text of the reply.
func (e Error) Error() string { return string(e) }

// The error replies that the scripts give for what they find.
const (
	WrongType   Error = "WRONGTYPE Operation against a key holding the wrong kind of value"
	NoLock      Error = "WRONGTYPE the hash is no lock"
	BadFence    Error = "BADFENCE the fence of this name is not a number"
	BadRecord   Error = "BADRECORD the admission record of this master cannot be read"
	badArgument Error = "ERR user_script: attempt to perform arithmetic on a nil value"
	noScript    Error = "NOSCRIPT No matching script. Please use EVAL."
)

// Eval runs a script at now. The reply is an int64, a []any of int64, string and []any, or an Error. args are ARGV,
// without the keys.
func (s *State) Eval(now int64, env Env, script *scripts.Script, keys, args []string) (reply any) {
	c := &call{state: s, now: now, env: env, keys: keys, args: args}
	defer func() {
		// An Error stands for the error that redis.call raises in the script, which ends it where it is.
		switch e := recover().(type) {
		case nil:
		case Error:
			reply = e
		default:
			panic(e)
		}
	}()
	switch script {
	case scripts.Acquire:
		return c.acquire()
	case scripts.Extend:
		return c.extend()
	case scripts.Release:
		return c.release()
	case scripts.Inspect:
		return c.inspect()
	case scripts.Admit:
		return c.admit()
	case scripts.SharedAcquire:
		return c.sharedAcquire()
	case scripts.SharedExtend:
		return c.sharedExtend()
	case scripts.SharedRelease:
		return c.sharedRelease()
	}
	return noScript
}

// A call is one run of a script. key and arg count from 1, as in Lua.
type call struct {
	state *State
	now   int64
	env   Env
	keys  []string
	args  []string
}

func (c *call) key(i int) string {
	if i > len(c.keys) {
		panic(Error("ERR Lua redis lib command arguments must be strings or integers"))
	}
	return c.keys[i-1]
}

func (c *call) has(i int) bool { return i <= len(c.args) }

func (c *call) arg(i int) string {
	if !c.has(i) {
		panic(badArgument)
	}
	return c.args[i-1]
}

// argOr is an argument that may be left out.
func (c *call) argOr(i int, left string) string {
	if !c.has(i) {
		return left
	}
	return c.args[i-1]
}

func (c *call) number(i int) float64 { return number(c.arg(i)) }

func (c *call) millis(i int) int64 { return int64(c.number(i)) }

func number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		panic(badArgument)
	}
	return n
}

// typed is what a command for one type finds: the key's value, where it has that type or is not there.
func (c *call) typed(key string, want Type) Value {
	v := c.state.lookup(c.now, key)
	if v.Type != None && v.Type != want {
		panic(WrongType)
	}
	return v
}

// get is GET, with a text for what is not there.
func (c *call) get(key, absent string) string {
	if v := c.typed(key, String); v.Type == String {
		return v.Text
	}
	return absent
}

func (c *call) exists(key string) bool { return c.state.lookup(c.now, key).Type != None }

// has reports whether a hash has a field: HEXISTS.
func (v Value) has(name string) bool {
	_, ok := v.field(name)
	return ok
}

// lease is the one field of a lock. The hash of another program, which may be large, is not read.
func (c *call) lease(lock string) []any {
	fields := c.typed(lock, Hash).Fields
	if len(fields) != 1 || len(fields[0].Name)+len(fields[0].Value) > 400 {
		panic(NoLock)
	}
	return []any{fields[0].Name, fields[0].Value}
}

// record is what the scripts read of an admission record.
func (c *call) record(key string) string {
	text := c.get(key, "")
	return text[:min(len(text), 65536)]
}

// The other keys of a name begin with the lock's.
func (c *call) fenceKey() string   { return c.key(1) + ":fence" }
func (c *call) readsKey() string   { return c.key(1) + ":reads" }
func (c *call) queue() string      { return c.key(1) + ":queue" }
func (c *call) waitersKey() string { return c.key(1) + ":waiters" }

// noFence is what acquire answers if there is no fence.
const noFence = "0000000000000000"

// fence reads a fence: its text and its number.
func (c *call) fence(key, absent string) (text string, top float64) {
	text = c.get(key, absent)
	if text == "" || strings.Trim(text, "0123456789") != "" {
		panic(BadFence)
	}
	return text, number(text)
}

const window = float64(scripts.Window / 1000) // in us

// raise sets the fence, which is kept for 60 s after the latest ballot that this master accepts, or after itself.
func (c *call) raise(fence, ballot string) {
	ahead := max(0, number(ballot)-float64(c.now)-window)
	c.state.Set(c.now, fence, ballot, scripts.Millis(scripts.FenceKept)+int64(math.Ceil(ahead/1000)))
}
