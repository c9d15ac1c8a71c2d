package reference

import (
	"regexp"
	"strings"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
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
	life            int64
	first, last     float64
	time            float64 // the client's estimate of the masters' time
	lease           string  // of a share, until
	waiter          waiter
	previous        string
}

func (c *call) ask() ask {
	a := ask{stamp: c.arg(1), id: c.arg(2), life: c.millis(3), first: c.number(4), last: c.number(5), lease: c.arg(6),
		mode: c.argOr(7, "acquire")}
	if a.time = a.first; c.argOr(10, "") != "" {
		a.time = c.number(10)
	}
	switch {
	case a.mode != "acquire":
		a.previous = c.argOr(8, "")
	case c.argOr(8, "") != "":
		a.waiter = waiter{id: c.arg(8), rank: c.millis(9), asked: a.first}
	}
	return a
}

// acquire models the script without its fast path, because that path gives the same replies.
func (c *call) acquire() any {
	a := c.ask()
	if c.typed(c.key(1), Hash); a.stamp != "" {
		c.record(c.key(2)) // the script reads the record before it checks the fence
	}
	n := c.read()
	if a.stamp != "" {
		//mutant:repair-record = !strings.HasPrefix(there, a.stamp) && a.mode != "repair"
		if there := c.record(c.key(2)); !strings.HasPrefix(there, a.stamp) {
			return []any{int64(quorum.Abstained), there, c.now}
		}
	}
	if other := c.otherKind(&n, ""); other != nil {
		return other
	}
	held, gone := c.holder(), ""
	n.queued = n.queued && c.drop()
	if held.id != "" && n.expired(&held, a.time) {
		gone, held.id = held.id, ""
	}
	replaces := held.id != "" && held.id == a.previous
	switch {
	case held.id == a.id:
		accepted := number(leaseText.FindStringSubmatch(held.text)[3])
		switch {
		case a.last == accepted:
			return int64(quorum.Granted)
		case a.last < accepted:
			return []any{int64(quorum.Stale), c.join(&n, "", a.waiter), n.fence, c.now}
		}
		a.lease = later(a.lease, held.text)
	case a.mode == "import" && !replaces:
		left := int64(-2)
		if held.id != "" {
			left = n.remaining(&held, a.time)
		}
		return []any{int64(quorum.Missing), left, n.fence, c.now}
	case held.id != "" && !replaces:
		if lingers.MatchString(held.text) {
			c.hint(c.key(1), held.id)
		}
		there := []any{held.id, threeWords.FindString(held.text)}
		return []any{
			int64(quorum.Held),
			n.remaining(&held, a.time),
			int64(0),
			there,
			c.join(&n, "", a.waiter),
			n.fence,
			c.now,
		}
	case n.queued && a.mode == "acquire":
		if left, woken := c.wake(a.waiter); woken {
			return []any{int64(quorum.Held), (left + 999) / 1000, int64(1), []any{}, c.join(&n, "", a.waiter), n.fence, c.now}
		}
	}
	if o := c.judge(&a, n.top); o != quorum.Granted {
		return []any{int64(o), c.join(&n, "", a.waiter), n.fence, c.now}
	}
	c.set("", scripts.FieldFence, c.arg(5), a.id, a.lease)
	if replaces {
		gone = a.previous
	}
	if gone != "" && gone != a.id {
		c.state.deleteFields(c.now, c.key(1), gone)
	}
	lasts := a.life - kept
	if held.id != "" {
		lasts = max(lasts, n.left-n.kept)
	}
	c.live(&n, lasts, a.last)
	if n.queued && a.waiter.id != "" {
		c.leave(a.waiter.id)
	}
	return int64(quorum.Granted)
}

// later returns the text of a lease with the later deadline of both texts, and the later version of the value.
func later(text, before string) string {
	now, old := leaseText.FindStringSubmatch(text), leaseText.FindStringSubmatch(before)
	if now == nil {
		panic(badArgument)
	}
	return now[1] + now[2] + max(now[4], old[4]) + laterValue(old[5], now[5])
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

// laterValue returns the value with the larger version, or b if both versions are equal.
func laterValue(a, b string) string {
	if versionOf(a) > versionOf(b) {
		return a
	}
	return b
}

// versionOf returns the version of a value, which is a space, 16 digits, a space and a text.
func versionOf(value string) string { return value[min(1, len(value)):min(17, len(value))] }

var threeWords = regexp.MustCompile(`^\S+ \S+ \S+`)
