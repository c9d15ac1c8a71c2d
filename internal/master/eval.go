package master

import (
	"cmp"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/teeth"
)

// Env is what a master is besides its keys: what it says of itself in INFO, both hexadecimal, and who listens.
type Env struct {
	RunID, ReplID string
	// Hears is the number of connections that are subscribed to a channel; nil where there are none.
	Hears func(channel string) int
}

// Identity is run id and replication id as the markers have them.
func (e Env) Identity() string {
	if teeth.RunIDAlone {
		return e.RunID + "/0"
	}
	return e.RunID + "/" + e.ReplID
}

// An Error is an error reply.
type Error string

// Error returns the text of the reply.
func (e Error) Error() string { return string(e) }

// A Message is what a script has published.
type Message struct{ Channel, Payload string }

// The error replies that the scripts give for what they find.
const (
	WrongType   Error = "WRONGTYPE Operation against a key holding the wrong kind of value"
	BadBar      Error = "BADBAR the bar of this name is not a number"
	BadMarker   Error = "BADMARKER the admission marker cannot be read"
	badArgument Error = "ERR user_script: attempt to perform arithmetic on a nil value"
	badTTL      Error = "ERR invalid expire time in 'set' command"
	noScript    Error = "NOSCRIPT No matching script. Please use EVAL."
)

// Eval runs a script at now. The reply is an int64, a []any of int64 and string, or an Error; out is what the script
// has published. args are ARGV, without the keys.
func (s *State) Eval(now int64, env Env, script *scripts.Script, keys, args []string) (reply any, out []Message) {
	c := &call{state: s, now: now, env: env, keys: keys, args: args}
	defer func() {
		// An Error stands for the error that redis.call raises in the script, which ends it where it is.
		switch e := recover().(type) {
		case nil:
		case Error:
			reply, out = e, c.out
		default:
			panic(e)
		}
	}()
	switch script {
	case scripts.Acquire:
		reply = c.acquire()
	case scripts.Extend:
		reply = c.extend()
	case scripts.ExtendMany:
		reply = c.extendMany()
	case scripts.Release:
		reply = c.release()
	case scripts.Inspect:
		reply = c.inspect()
	case scripts.Admit:
		reply = c.admit()
	case scripts.Many:
		reply = c.many()
	default:
		reply = noScript
	}
	return reply, c.out
}

// A call is one run of a script. key and arg count from 1, as in Lua.
type call struct {
	state *State
	now   int64
	env   Env
	keys  []string
	args  []string
	out   []Message
}

func (c *call) key(i int) string {
	if i > len(c.keys) {
		panic(Error("ERR Lua redis lib command arguments must be strings or integers"))
	}
	return c.keys[i-1]
}

// arg returns an argument, "" where there is none; the scripts compare or measure each that may be missing.
func (c *call) arg(i int) string {
	if i > len(c.args) {
		return ""
	}
	return c.args[i-1]
}

func (c *call) number(i int) float64 { return number(c.arg(i)) }

func number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		panic(Error("ERR user_script: attempt to compare a number with nil"))
	}
	return n
}

// get is GET.
func (c *call) get(key string) (string, bool) {
	v := c.state.lookup(c.now, key)
	if v.Type != None && v.Type != String {
		panic(WrongType)
	}
	return v.Text, v.Type == String
}

// hash is what HGET and HDEL find: the key's value, where it is a hash or nothing.
func (c *call) hash(key string) Value {
	v := c.state.lookup(c.now, key)
	if v.Type != None && v.Type != Hash {
		panic(WrongType)
	}
	return v
}

// setBar writes a bar that nobody writes over in place: SET bar 0ballot PX ttl.
func (c *call) setBar(key, ballot, ttl string) {
	ms := number(ttl)
	if ms <= 0 {
		panic(badTTL)
	}
	c.state.Set(c.now, key, "0"+ballot, int64(ms))
}

// raiseBar writes the bar of a hold whose ballots are inside the window, where the times are the usual ones: in place where
// that leaves it its time, see acquire.lua.
func (c *call) raiseBar(key, text string) {
	const halfHour, usual = 1_800_000_000, 5_430_000
	v := c.state.lookup(c.now, key)
	if v.Type == String && len(v.Text) == len(text) && int64(number(v.Text))/halfHour == int64(number(text))/halfHour {
		v.Text = text
		c.state.put(key, v)
		return
	}
	c.state.Set(c.now, key, text, usual)
}

// bar reads the bar as the scripts do: the text "0" and the number 0 where there is none.
func (c *call) bar(key string) (text string, n float64) {
	text, there := c.get(key)
	if !there {
		return "0", 0
	}
	if text == "" || strings.Trim(text, "0123456789") != "" {
		panic(BadBar)
	}
	return text, number(text)
}

var guardAndEpoch = regexp.MustCompile(` guard=([0-9]+) epoch=([0-9]+) `)

// refused reports whether the fleet's marker forbids the caller's TTL or epoch.
func refused(marker string, ttl, epoch float64) bool {
	found := guardAndEpoch.FindStringSubmatch(marker)
	if found == nil {
		panic(BadMarker)
	}
	return ttl > number(found[1]) || epoch < number(found[2]) && !teeth.NoEpoch
}

// A rest is what an acquire carries only where it is not usual.
type rest struct {
	window float64
	keep   string // the TTL of the bar
	usual  bool   // the window and keep are left out
	mode   scripts.Mode
	depth  string
	epoch  float64
}

var usualRest = rest{
	window: float64(scripts.UsualWindow.Microseconds()), keep: strconv.FormatInt(scripts.Millis(scripts.UsualBarTTL), 10),
	usual: true, mode: scripts.ModeAcquire, depth: "1",
}

var restOfAcquire = regexp.MustCompile(`^([0-9]+) ([0-9]+)(?: ([a-z]) ([0-9]+) ([0-9]+))?$`)

func (c *call) rest() rest {
	r := usualRest
	if c.arg(5) == "" {
		return r
	}
	found := restOfAcquire.FindStringSubmatch(c.arg(5))
	if found == nil {
		panic(badArgument)
	}
	r.window, r.keep, r.usual = number(found[1]), found[2], false
	if found[3] != "" {
		r.mode, r.depth, r.epoch = scripts.Mode(found[3]), found[4], number(found[5])
	}
	return r
}

// last is the last ballot of an acquire.
func (c *call) last() string { return cmp.Or(c.arg(6), c.arg(4)) }

func (c *call) acquire() any {
	lock, bar, id, previous, ticket := c.key(1), c.key(2), c.arg(2), c.arg(7), c.arg(8) != ""
	rest := c.rest()
	if c.arg(1) != "" {
		marker, there := c.get(c.key(3))
		if !there || marker != c.arg(1) {
			if rest.mode == scripts.ModeAcquire {
				return []any{int64(scripts.Abstained), marker, c.now}
			}
			if there && refused(marker, c.number(3), rest.epoch) {
				return []any{int64(scripts.Refused), marker, c.now}
			}
		}
	}
	raw, top := c.bar(bar)
	first, last, now, window := c.number(4), number(c.last()), float64(c.now), rest.window
	mine, replaces, ahead, holder := false, false, false, ""
	if c.state.lookup(c.now, lock).Type != None {
		held := c.hash(lock)
		if _, mine = held.field(id); mine {
			if last == top {
				return int64(scripts.Granted)
			}
		} else if _, there := held.field(previous); there && previous != "" {
			replaces = true
		} else {
			ahead, holder = true, held.Fields[0].Name
		}
	} else if rest.mode == scripts.ModeImport {
		return []any{int64(scripts.Missing), raw, c.now, int64(-2)}
	} else if c.arg(9) == "1" {
		head, queued := c.head(c.key(4))
		ahead = queued && head != previous
	}
	if ahead {
		place := int64(-1)
		if ticket && first >= now-float64(waiterTTL*1000) {
			place = c.enqueue(c.arg(1) != "" && c.arg(10) != "0" && (first > top || teeth.NoBar) && (first >= now-window && last <= now+window || teeth.NoBounds))
		}
		return []any{int64(scripts.Held), c.state.TTL(c.now, lock), raw, c.now, holder, place}
	}
	if first <= top && !teeth.NoBar || first < now-window && !teeth.NoBounds {
		return []any{int64(scripts.Stale), raw, c.now}
	}
	if last > now+window && (first != top+1 || last != first) && !teeth.NoBounds {
		return []any{int64(scripts.Ahead), raw, c.now}
	}
	c.state.setField(c.now, lock, id, rest.depth)
	if ttl := int64(c.number(3)); !mine || c.state.TTL(c.now, lock) < ttl {
		c.state.Expire(c.now, lock, ttl)
	}
	if !rest.usual || last > now+window {
		c.setBar(bar, c.last(), rest.keep)
	} else {
		c.raiseBar(bar, c.last())
	}
	if replaces {
		c.state.deleteFields(c.now, lock, previous)
	} else if ticket {
		c.dequeue(c.key(4), c.key(5), previous)
	}
	return int64(scripts.Granted)
}

func (c *call) extend() any {
	lock := c.key(1)
	depth, mine := c.hash(lock).field(c.arg(2))
	if !mine {
		raw, there := c.get(c.key(2))
		if !there {
			raw = "0"
		}
		return []any{int64(scripts.Missing), raw, c.now, c.state.TTL(c.now, lock)}
	}
	ttl := c.number(3)
	if c.arg(1) != "" {
		marker, there := c.get(c.key(3))
		if there && marker != c.arg(1) && refused(marker, ttl, c.number(5)) {
			return []any{int64(scripts.Refused), marker, c.now}
		}
	}
	if depth != c.arg(4) {
		c.state.setField(c.now, lock, c.arg(2), c.arg(4))
	}
	if ttl > 0 && float64(c.state.TTL(c.now, lock)) < ttl {
		c.state.Expire(c.now, lock, int64(ttl))
	}
	return int64(scripts.Granted)
}

func (c *call) extendMany() any {
	ttl := c.number(2)
	if c.arg(1) != "" {
		marker, there := c.get(c.key(1))
		if there && marker != c.arg(1) && refused(marker, ttl, c.number(3)) {
			return []any{int64(scripts.Refused), marker, c.now}
		}
	}
	out := make([]byte, 0, len(c.keys)-1)
	for i := 2; i <= len(c.keys); i++ {
		lock, id, want := c.key(i), c.arg(2*i), c.arg(2*i+1)
		depth, mine := c.hash(lock).field(id)
		if !mine {
			out = append(out, '5')
			continue
		}
		if depth != want {
			c.state.setField(c.now, lock, id, want)
		}
		if ttl > 0 && float64(c.state.TTL(c.now, lock)) < ttl {
			c.state.Expire(c.now, lock, int64(ttl))
		}
		out = append(out, '1')
	}
	return string(out)
}

// An ending is what a release carries only where it is not usual.
type ending struct {
	gives   string
	several bool
	window  float64
	keep    string // the TTL of the bar
	usual   bool   // the window and keep are left out
	reserve int64
}

var usualEnding = ending{gives: "A", window: usualRest.window, keep: usualRest.keep, usual: true, reserve: scripts.Millis(scripts.Reservation)}

var endingOfRelease = regexp.MustCompile(`^([AFLNR])(\+?)(?: ([0-9]+) ([0-9]+) ([0-9]+))?$`)

func (c *call) ending() ending {
	e := usualEnding
	if c.arg(4) == "" {
		return e
	}
	found := endingOfRelease.FindStringSubmatch(c.arg(4))
	if found == nil {
		panic(badArgument)
	}
	e.gives, e.several = found[1], found[2] != ""
	if found[3] != "" {
		e.window, e.keep, e.usual, e.reserve = number(found[3]), found[4], false, int64(number(found[5]))
	}
	return e
}

func (c *call) release() any {
	lock, bar, id := c.key(1), c.key(2), c.arg(2)
	end := c.ending()
	n := int64(0)
	if ids := c.args[min(4, len(c.args)):]; id != "" || len(ids) > 0 {
		c.hash(lock)
		n = int64(min(c.state.deleteFields(c.now, lock, append(slices.Clone(ids), id)...), 1))
	}
	if end.gives == "L" {
		waiter := id
		if len(c.args) > 4 {
			waiter = c.args[len(c.args)-1]
		}
		c.dequeue(c.key(3), c.key(4), waiter)
	}
	if n > 0 || end.gives == "A" && c.state.lookup(c.now, lock).Type == None {
		if n > 0 && end.gives != "L" {
			c.out = append(c.out, Message{Channel: lock[:max(0, len(lock)-len("lock"))] + "free", Payload: id})
		}
		if end.gives != "N" {
			c.handOn(lock, end)
		}
		if n > 0 && !end.several {
			return n
		}
	}
	_, there := c.get(bar)
	_, top := c.bar(bar)
	ballot := c.number(3)
	if ballot > 0 && (!there || top < ballot) && ballot <= float64(c.now)+end.window {
		c.setBar(bar, c.arg(3), end.keep)
	}
	return n
}

func (c *call) inspect() any {
	id, depth := "", "0"
	left := c.state.TTL(c.now, c.key(1))
	if left != -2 {
		first := c.hash(c.key(1)).Fields[0]
		id, depth = first.Name, first.Value
	}
	raw, there := c.get(c.key(2))
	if !there {
		raw = "0"
	}
	marker, _ := c.get(c.key(3))
	return []any{id, depth, left, raw, c.now, marker}
}

var (
	ownerOfMarker = regexp.MustCompile(`^v1 id=(\S+) `)
	guardOfMarker = regexp.MustCompile(` guard=[0-9]+ `)
	epochOfMarker = regexp.MustCompile(` epoch=([0-9]+) `)
	sinceOfMarker = regexp.MustCompile(` since=([0-9]+) `)
	epochToState  = regexp.MustCompile(`(?s) epoch=.* state=`)
)

var pendingMarker = regexp.MustCompile(`^v1 id=(\S+) .* state=pending:([0-9]+)$`)

func (c *call) admit() any {
	marker, _ := c.get(c.key(1))
	now, identity, what := float64(c.now), c.env.Identity(), scripts.AdmitStep(c.arg(1))
	answer := func(r scripts.AdmitResult, marker string) any { return []any{int64(r), marker, c.now, identity} }
	if what == scripts.AdmitRead {
		return answer(scripts.AdmitDone, marker)
	}
	if identity != c.arg(2) {
		return answer(scripts.AdmitOtherIdentity, marker)
	}
	if marker != c.arg(3) {
		return answer(scripts.AdmitOtherMarker, marker)
	}
	median := c.number(4)
	if what != scripts.AdmitNow && what != scripts.AdmitGuard && what != scripts.AdmitEpoch && math.Abs(now-median) > c.number(5) {
		return answer(scripts.AdmitClockDiffers, marker)
	}
	next := ""
	switch what {
	case scripts.AdmitEnd:
		found := pendingMarker.FindStringSubmatch(marker)
		if found == nil || found[1] != identity || now < number(found[2]) {
			return answer(scripts.AdmitTooEarly, marker)
		}
		next = strings.TrimSuffix(marker, "pending:"+found[2]) + "admitted"
	case scripts.AdmitGuard:
		found := ownerOfMarker.FindStringSubmatch(marker)
		at := guardOfMarker.FindStringIndex(marker)
		if found == nil || found[1] != identity || at == nil {
			return answer(scripts.AdmitTooEarly, marker)
		}
		next = marker[:at[0]] + " guard=" + c.arg(7) + " " + marker[at[1]:]
	case scripts.AdmitEpoch:
		found := ownerOfMarker.FindStringSubmatch(marker)
		epoch := epochOfMarker.FindStringSubmatch(marker)
		if found == nil || found[1] != identity || epoch == nil || c.arg(8) == "0" || c.number(8) < number(epoch[1]) {
			return answer(scripts.AdmitTooEarly, marker)
		}
		since := strconv.FormatInt(c.now, 10)
		if had := sinceOfMarker.FindStringSubmatch(marker); had != nil && c.arg(8) == epoch[1] {
			since = had[1]
		}
		next = epochToState.ReplaceAllLiteralString(marker, " epoch="+c.arg(8)+" since="+since+" alone="+c.arg(10)+" state=")
	default:
		state, home, epoch := "admitted", "", c.arg(8)
		if what == scripts.AdmitStart {
			state = "pending:" + strconv.FormatFloat(math.Max(now, median)+c.number(6), 'f', 0, 64)
		}
		if c.arg(9) != "" {
			home = " home=" + c.arg(9)
		}
		if epoch != "0" {
			epoch += " since=" + strconv.FormatInt(c.now, 10) + " alone=" + c.arg(10)
		}
		next = "v1 id=" + identity + home + " guard=" + c.arg(7) + " epoch=" + epoch + " state=" + state
	}
	c.state.Set(c.now, c.key(1), next, 0)
	return answer(scripts.AdmitDone, next)
}
