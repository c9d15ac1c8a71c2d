package reference

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/quorum"
)

// Scripts of readers-writer locks.

var (
	ofWriter       = regexp.MustCompile(`(?s)^[^:]*:[0-9]+w`)
	ofReaderWaiter = regexp.MustCompile(`(?s)^[0-9]+:[^:]*:[0-9]+r`)
)

const mostOver = 500

// holder returns the lease whose share expires last, and the remaining time of this share in us. id is "" if all
// shares have expired.
func (c *call) holder() (id string, left int64) {
	shares := c.typed(c.key(1), SortedSet).Fields
	if len(shares) == 0 {
		return "", 0
	}
	top := shares[len(shares)-1]
	var over []string
	for _, f := range shares {
		if f.score() > c.now || len(over) == mostOver {
			break
		}
		over = append(over, f.Name)
	}
	c.state.deleteFields(c.now, c.key(1), over...)
	if left := top.score() - c.now; left > 0 {
		return top.Name, left
	}
	return "", 0
}

// ends returns the expiry of a lease's share, or 0 if there is none or it has expired.
func (c *call) ends(id string) int64 {
	text, there := c.typed(c.key(1), SortedSet).field(id)
	if at := (Field{Value: text}).score(); there && at > c.now {
		return at
	}
	return 0
}

func (c *call) share(id string, ttl int64) {
	lock := c.key(1)
	c.state.SetScore(c.now, lock, id, c.now+ttl*1000)
	if c.state.TTL(c.now, lock) < ttl {
		c.state.Expire(c.now, lock, ttl)
	}
}

// invite is like wake, for a name that readers hold. If the first waiter is a writer, invite only probes whether the
// client of this writer listens.
func (c *call) invite(caller waiter) (left int64, woken bool) {
	for range mostWoken {
		queue := c.typed(c.queue(), SortedSet).Fields
		if len(queue) == 0 || ofReaderWaiter.MatchString(queue[0].Name) {
			return c.wake(caller)
		}
		if caller.before(queue[0]) {
			return 0, false
		}
		first, counts := queue[0].Name, int64(0)
		if text, ok := c.typed(c.waitersKey(), SortedSet).field(first); ok {
			counts = Field{Value: text}.score()
		}
		owner := ""
		if found := ownerOfWaiter.FindStringSubmatch(first); found != nil {
			owner = found[1]
		}
		//mutant:gone-writer 2= c.publish(inboxOf(c.key(1), owner), "") != 0
		if counts > c.now+12000000 && c.publish(inboxOf(c.key(1), owner), first+"\n"+c.key(1)+"\n") != 0 {
			//mutant:writers-turn = 0, false
			return counts - 12000000 - c.now, true
		}
		c.leave(first)
	}
	return 0, true
}

// fences returns the fence and the readers' fence.
func (c *call) fences() (raw string, top, reads float64) {
	c.get(c.fenceKey(), "0")
	c.get(c.readsKey(), "0") // the script reads both before it checks either
	raw, top = c.fence(c.fenceKey(), "0")
	_, reads = c.fence(c.readsKey(), "0")
	return raw, top, reads
}

// sharedAsk reads the arguments of sharedAcquire.
func (c *call) sharedAsk() ask {
	a := ask{
		stamp: c.arg(1), id: c.arg(2), ttl: c.millis(3), first: c.number(4), last: c.number(5),
		mode: c.argOr(6, "acquire"),
	}
	if a.mode == "acquire" && c.has(7) {
		a.waiter = waiter{id: c.arg(7), rank: c.millis(8), asked: a.first}
	}
	return a
}

func (c *call) sharedAcquire() any {
	a := c.sharedAsk()
	writer, now := ofWriter.MatchString(a.id), float64(c.now)
	if a.stamp != "" {
		//mutant:share-repair-record = !strings.HasPrefix(there, a.stamp) && a.mode != "repair"
		if there := c.record(c.key(2)); !strings.HasPrefix(there, a.stamp) {
			return []any{int64(quorum.Abstained), there, c.now}
		}
	}
	raw, top, reads := c.fences()
	//mutant:readers-fence = false
	if writer && reads > top {
		raw, top = c.get(c.readsKey(), "0"), reads
	}
	queued := c.exists(c.queue())
	if queued {
		c.drop()
	}
	held, left := c.holder()
	replaces := a.mode != "acquire" && c.has(7) && c.ends(c.arg(7)) > 0
	var mine int64
	if held != "" {
		mine = c.ends(a.id)
	}
	switch {
	case mine > 0 && a.mode != "downgrade":
		return int64(quorum.Granted)
	//mutant:downgrade-needs-share = false
	case a.mode == "downgrade" && mine == 0 && !replaces:
		return []any{int64(quorum.Missing), c.state.TTL(c.now, c.key(1)), raw, c.now}
	}
	if reply := c.sharedRefusal(a, writer, replaces || mine > 0, queued, held, left, raw); reply != nil {
		return reply
	}
	//mutant:share-window-edge 2= a.first < now-window
	if a.first <= top || a.first <= now-window {
		return []any{int64(quorum.Stale), c.join(a.waiter), raw, c.now}
	}
	latest := now + window
	if a.first == a.last && top > now {
		latest = top + window
	}
	if a.last > latest {
		return []any{int64(quorum.Ahead), c.join(a.waiter), raw, c.now}
	}
	c.grantShare(a, writer, replaces, mine, reads)
	if queued && a.waiter.id != "" {
		c.leave(a.waiter.id)
	}
	//mutant:reader-wakes-next = false
	if queued && !writer {
		c.invite(waiter{})
	}
	return int64(quorum.Granted)
}

// grantShare grants the caller its share, deletes the share that it replaces, and raises the fence of its role. mine
// is the expiry of the caller's present share, or 0, and reads is the readers' fence.
func (c *call) grantShare(a ask, writer, replaces bool, mine int64, reads float64) {
	if mine < c.now+a.ttl*1000 {
		c.share(a.id, a.ttl)
	}
	if replaces {
		c.state.deleteFields(c.now, c.key(1), c.arg(7))
	}
	if writer {
		c.raise(c.fenceKey(), c.arg(5))
		//mutant:downgrade-fence = mine == 0 && a.last > reads
	} else if a.last > reads {
		c.raise(c.readsKey(), c.arg(5))
	}
}

// sharedRefusal returns the reply if other leases hold the name, or a waiter comes before the caller. It returns nil
// if the caller may acquire the name.
func (c *call) sharedRefusal(a ask, writer, own, queued bool, held string, left int64, raw string) any {
	//mutant:readers-wait 4= false
	//mutant:writer-alone 3= false
	refused, wait, free := held != "" && !own && (writer || ofWriter.MatchString(held)), left, int64(0)
	fields := []any{}
	if !refused && queued && a.mode == "acquire" {
		var counts int64
		if held != "" {
			counts, refused = c.invite(a.waiter)
			wait = min(counts, left)
		} else {
			wait, refused = c.wake(a.waiter)
			free = 1
		}
	}
	if !refused {
		return nil
	}
	if held != "" {
		fields = []any{held, "1"}
	}
	return []any{int64(quorum.Held), (wait + 999) / 1000, free, fields, c.join(a.waiter), raw, c.now}
}

func (c *call) sharedExtend() any {
	lock, ttl := c.key(1), c.millis(3)
	ends := c.ends(c.arg(2))
	if ends == 0 {
		fence, reads := c.get(c.fenceKey(), "0"), c.get(c.readsKey(), "0")
		if plainNumber(reads) > plainNumber(fence) {
			fence = reads
		}
		return []any{int64(quorum.Missing), c.state.TTL(c.now, lock), fence, c.now}
	}
	if refusal := c.refuse(float64(ttl), c.arg(4)); refusal != nil {
		return refusal
	}
	if end := c.now + ttl*1000; ends < end {
		//mutant:share-end -> for _, f := range c.typed(lock, SortedSet).Fields { c.state.SetScore(c.now, lock, f.Name, end) }
		c.state.SetScore(c.now, lock, c.arg(2), end)
	}
	if ttl > 0 && c.state.TTL(c.now, lock) < ttl {
		c.state.Expire(c.now, lock, ttl)
	}
	return int64(quorum.Granted)
}

// plainNumber models Lua's tonumber. It returns 0 if text is not a number.
func plainNumber(text string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(n) {
		return 0
	}
	return n
}

func (c *call) sharedRelease() any {
	present := 0
	if c.arg(1) != "" {
		c.typed(c.key(1), SortedSet)
		ids := append([]string{c.arg(1)}, c.args[min(6, len(c.args)):]...)
		present = min(1, c.state.deleteFields(c.now, c.key(1), ids...))
	}
	c.endWait()
	if !c.exists(c.queue()) {
		return int64(present)
	}
	c.drop()
	switch held, _ := c.holder(); {
	case held == "":
		c.wake(waiter{})
	case !ofWriter.MatchString(held):
		c.invite(waiter{})
	}
	return int64(present)
}
