package reference

import (
	"errors"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/heartbeat"
	"github.com/redlock-go/redlock/internal/scripts"
)

// Env is the environment of a master besides its keys: its INFO, and its subscribers.
type Env struct {
	// RunID and ReplID2 are hexadecimal; Offset is second_repl_offset. The zero ReplID2 means the 40 zeros and the
	// offset of -1 of a server that was never promoted.
	RunID, ReplID2 string
	Offset         int64
	// Publish delivers a message and returns the number of receivers. A negative result means that the user has no
	// right to publish. Publish is called while the script runs. nil means that there are no subscribers.
	Publish func(channel, payload string) int
	// InfoFunc returns the reply of INFO, for heartbeats. nil means an empty reply.
	InfoFunc func() string
}

// Identity returns the server's identity in the form of admission records.
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

// Error replies of the scripts.
const (
	WrongType   Error = "WRONGTYPE Operation against a key holding the wrong kind of value"
	NoLock      Error = "WRONGTYPE the hash is not a lock"
	BadFence    Error = "BADFENCE the fence of this name is not a number"
	BadRecord   Error = "BADRECORD the admission record of this master cannot be read"
	badArgument Error = "ERR user_script: attempt to perform arithmetic on a nil value"
	noScript    Error = "NOSCRIPT No matching script. Please use EVAL."
)

// Eval runs a script at the time now. The reply is an int64, a []any of int64, string and []any, or an Error. args are
// ARGV, without the keys.
func (s *State) Eval(now int64, env Env, script *frame.Script, keys, args []string) (reply any) {
	c := &call{state: s, now: now, env: env, keys: keys, args: args}
	defer func() {
		// A panic with an Error models an error of redis.call, which ends the script.
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
	case heartbeat.Script:
		return c.heartbeat()
	case scripts.SlotAcquire:
		return c.slotAcquire()
	case scripts.SlotExtend:
		return c.slotExtend()
	case scripts.SharedAcquire:
		return c.sharedAcquire()
	case scripts.SharedExtend:
		return c.sharedExtend()
	case scripts.SharedRelease:
		return c.sharedRelease()
	}
	return noScript
}

// A call is one run of a script. The indices of key and arg begin with 1, as in Lua.
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

// argOr returns an optional argument, or absent if the argument is missing.
func (c *call) argOr(i int, absent string) string {
	if !c.has(i) {
		return absent
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

// typed returns the value of key for a command of one type: the value must have that type or not exist.
func (c *call) typed(key string, want Type) Value {
	v := c.state.lookup(c.now, key)
	if v.Type != None && v.Type != want {
		panic(WrongType)
	}
	return v
}

// get models GET. It returns absent if the key does not exist.
func (c *call) get(key, absent string) string {
	if v := c.typed(key, String); v.Type == String {
		return v.Text
	}
	return absent
}

func (c *call) exists(key string) bool { return c.state.lookup(c.now, key).Type != None }

// record returns the part of an admission record that the scripts read.
func (c *call) record(key string) string {
	text := c.get(key, "")
	return text[:min(len(text), 65536)]
}

// Other keys of a name begin with the key of the lock.
func (c *call) queue() string      { return c.key(1) + ":queue" }
func (c *call) waitersKey() string { return c.key(1) + ":waiters" }
func (c *call) sharesKey() string  { return c.key(1) + ":shares" }
