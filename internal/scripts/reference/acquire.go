package reference

import (
	"regexp"
	"strings"

	"github.com/redlock-go/redlock/internal/quorum"
)

var epochAndLongest = regexp.MustCompile(`(?s)^v4 .* epoch=([0-9]+) .*maxttl=([0-9]+) `)

// refused reports whether an admission record forbids a TTL in ms, an epoch, or every extension.
func refused(record string, ttl, epoch float64) bool {
	found := epochAndLongest.FindStringSubmatch(record)
	if found == nil {
		panic(BadRecord)
	}
	//mutant:unproven-extends 3= false
	return ttl > number(found[2]) || epoch < number(found[1]) || strings.Contains(record, " state=unproven ")
}

// An ask holds the arguments of an acquire.
type ask struct {
	stamp, id, mode string
	ttl             int64
	first, last     float64
	token, depth    string
	waiter          waiter
	previous, value string
}

func (c *call) ask() ask {
	a := ask{stamp: c.arg(1), id: c.arg(2), ttl: c.millis(3), first: c.number(4), last: c.number(5),
		mode: c.argOr(6, "acquire"), token: c.arg(4), depth: "1"}
	switch {
	case a.mode == "repair":
		a.token, a.depth, a.previous, a.value = c.arg(7), c.arg(8), c.argOr(9, ""), c.argOr(10, "")
	case a.mode != "acquire":
		a.previous = c.arg(7)
	default:
		if c.argOr(8, "") != "" {
			a.waiter = waiter{id: c.arg(7), rank: c.millis(8), asked: a.first}
		}
		a.depth = c.argOr(9, "1")
	}
	return a
}

// acquire models the script without its fast path, because that path gives the same replies.
func (c *call) acquire() any {
	lock, a := c.key(1), c.ask()
	c.get(c.fenceKey(), "")
	if a.stamp != "" {
		//mutant:repair-record = !strings.HasPrefix(there, a.stamp) && a.mode != "repair"
		if there := c.record(c.key(2)); !strings.HasPrefix(there, a.stamp) {
			return []any{int64(quorum.Abstained), there, c.now}
		}
	}
	raw, top := c.fence(c.fenceKey(), noFence)
	queued := c.exists(c.queue())
	if queued {
		c.drop()
	}
	left := c.state.TTL(c.now, lock)
	held := c.typed(lock, Hash)
	lease, mine := held.field(a.id)
	replaces := a.previous != "" && held.has(a.previous)
	switch {
	case mine:
		accepted, value := ballotAndValue(lease)
		switch {
		case a.last == accepted:
			return int64(quorum.Granted)
		case a.last < accepted:
			return []any{int64(quorum.Stale), c.join(a.waiter), raw, c.now}
		}
		a.value = laterValue(value, a.value)
	case a.mode == "import" && !replaces:
		return []any{int64(quorum.Missing), left, raw, c.now}
	case left != -2 && !replaces:
		c.recall(lock)
		there := c.lease(lock)
		if without := threeWords.FindString(there[1].(string)); without != "" {
			there[1] = without
		}
		return []any{int64(quorum.Held), left, int64(0), there, c.join(a.waiter), raw, c.now}
	//mutant:repair-no-queue 2= true
	case queued && a.mode == "acquire":
		if left, woken := c.wake(a.waiter); woken {
			return []any{int64(quorum.Held), (left + 999) / 1000, int64(1), []any{}, c.join(a.waiter), raw, c.now}
		}
	}
	if o := c.judge(&a, top); o != quorum.Granted {
		return []any{int64(o), c.join(a.waiter), raw, c.now}
	}
	c.state.setField(c.now, lock, a.id, a.depth+" "+a.token+" "+c.arg(5)+a.value)
	if left < a.ttl {
		c.state.Expire(c.now, lock, a.ttl)
	}
	if replaces {
		c.state.deleteFields(c.now, lock, a.previous)
	}
	c.raise(c.fenceKey(), c.arg(5))
	if queued && a.waiter.id != "" {
		c.leave(a.waiter.id)
	}
	return int64(quorum.Granted)
}

// judge compares the ballots with the fence top and with this master's time, and returns Granted, Stale or Ahead.
func (c *call) judge(a *ask, top float64) quorum.Outcome {
	now := float64(c.now)
	//mutant:window-edge 2= a.first < now-window
	//mutant:ballot-bounds 2= false
	//mutant:fence 1= false
	if a.first <= top || a.first <= now-window {
		return quorum.Stale
	}
	latest := now + window
	if a.first == a.last && top > now {
		latest = top + window
	}
	if a.last > latest {
		return quorum.Ahead
	}
	return quorum.Granted
}

// ballotAndValue returns the ballot and the value of a lease, or 0 and "" for a text that the scripts do not write.
func ballotAndValue(lease string) (ballot float64, value string) {
	found := wordsOfLease.FindStringSubmatch(lease)
	if found == nil {
		return 0, ""
	}
	return number(found[1]), found[2]
}

// laterValue returns the value with the larger version, or b if both versions are equal.
func laterValue(a, b string) string {
	if versionOf(a) > versionOf(b) {
		return a
	}
	return b
}

// versionOf returns the version of a value, which is a space, 16 digits, a space and a text.
func versionOf(value string) string { return value[min(1, len(value)):min(17, len(value))] }

var (
	wordsOfLease = regexp.MustCompile(`(?s)^\S+ [0-9]+ ([0-9]+)(.*)$`)
	threeWords   = regexp.MustCompile(`^\S+ \S+ \S+`)
)
