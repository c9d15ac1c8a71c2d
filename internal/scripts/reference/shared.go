package reference

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// Scripts of readers-writer locks.

var (
	ofWriter       = regexp.MustCompile(`(?s)^[^:]*:[0-9]+w`)
	ofReaderWaiter = regexp.MustCompile(`(?s)^[0-9]+:[^:]*:[0-9]+r`)
)

const mostOver = 500

// shareHolder returns the lease whose share expires last, and the time until then in us. id is "" if no share counts at
// this time.
func (c *call) shareHolder(time int64) (id string, left int64) {
	shares := c.typed(c.sharesKey(), SortedSet).Fields
	if len(shares) == 0 {
		return "", 0
	}
	if top := shares[len(shares)-1]; top.score() >= time {
		return top.Name, top.score() - time + 1
	}
	return "", 0
}

// removeExpired removes shares that do not count at this time. Only an acquire does so: a request without a ballot
// knows no clock but this master's.
func (c *call) removeExpired(time int64) {
	var over []string
	for _, f := range c.typed(c.sharesKey(), SortedSet).Fields {
		if f.score() >= time || len(over) == mostOver {
			break
		}
		over = append(over, f.Name)
	}
	c.state.deleteFields(c.now, c.sharesKey(), over...)
}

// ends returns the deadline of a lease's share, or 0 if the share does not count at this time.
func (c *call) ends(id string, time int64) int64 {
	text, there := c.typed(c.sharesKey(), SortedSet).field(id)
	if at := (Field{Value: text}).score(); there && at >= time {
		return at
	}
	return 0
}

// share sets the deadline of a share, unless the share has a later one: mine.
func (c *call) share(id string, mine, life int64, until string) {
	//mutant:share-deadline = c.now + (life-kept)*1000
	at := max(c.now+(life-kept)*1000, int64(number(until)))
	if at > mine {
		c.state.SetScore(c.now, c.sharesKey(), id, at)
	}
	if c.state.TTL(c.now, c.sharesKey()) < life {
		c.state.Expire(c.now, c.sharesKey(), life)
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
		if counts > c.now+12000000 && c.publish(inboxOf(c.key(1), owner), first+"\n"+c.key(1)+"\n") != 0 {
			return counts - 12000000 - c.now, true
		}
		c.leave(first)
	}
	return 0, true
}

// reads returns the readers' fence.
func (c *call) reads() (text string, top float64) {
	text, there := c.typed(c.key(1), Hash).field(scripts.FieldReads)
	if !there {
		return "0", 0
	}
	if text == "" || strings.Trim(text, "0123456789") != "" {
		panic(BadFence)
	}
	return text, number(text)
}

func (c *call) sharedAcquire() any {
	a, n := c.ask(), c.read()
	writer, now := ofWriter.MatchString(a.id), float64(c.now)
	if a.stamp != "" {
		if there := c.record(c.key(2)); !strings.HasPrefix(there, a.stamp) {
			return []any{int64(quorum.Abstained), there, c.now}
		}
	}
	if other := c.otherKind(&n, scripts.KindShared); other != nil {
		return other
	}
	text, reads := c.reads()
	//mutant:readers-fence = false
	if writer && reads > n.top {
		n.fence, n.top = text, reads
	}
	n.queued = n.queued && c.drop()
	//mutant:share-ballot-deadline = c.now
	time := min(c.now, int64(a.time))
	c.removeExpired(time)
	held, left := c.shareHolder(time)
	replaces := a.previous != "" && c.ends(a.previous, time) > 0
	var mine int64
	if held != "" {
		mine = c.ends(a.id, time)
	}
	switch {
	case mine > 0 && a.mode != "downgrade":
		return int64(quorum.Granted)
	//mutant:downgrade-needs-share = false
	case a.mode == "downgrade" && mine == 0 && !replaces:
		return []any{int64(quorum.Missing), leftOf(held, left), n.fence, c.now}
	}
	if reply := c.sharedRefusal(&n, a, writer, replaces || mine > 0, held, left); reply != nil {
		return reply
	}
	if a.first <= n.top || a.first <= now-window {
		return []any{int64(quorum.Stale), c.join(&n, scripts.KindShared, a.waiter), n.fence, c.now}
	}
	latest := now + window
	if a.first == a.last && n.top > now {
		latest = n.top + window
	}
	if a.last > latest {
		return []any{int64(quorum.Ahead), c.join(&n, scripts.KindShared, a.waiter), n.fence, c.now}
	}
	c.grantShare(&n, a, writer, replaces, mine, reads)
	if n.queued && a.waiter.id != "" {
		c.leave(a.waiter.id)
	}
	if n.queued && !writer {
		c.invite(waiter{})
	}
	return int64(quorum.Granted)
}

// leftOf returns the ms until the last share expires, or -2 if there is none.
func leftOf(held string, left int64) int64 {
	if held == "" {
		return -2
	}
	return (left + 999) / 1000
}

// grantShare grants the caller its share, deletes the share that it replaces, and raises the fence of its role. mine
// is the deadline of the caller's present share, or 0, and reads is the readers' fence.
func (c *call) grantShare(n *hash, a ask, writer, replaces bool, mine int64, reads float64) {
	c.share(a.id, mine, a.life, a.lease)
	if replaces {
		c.state.deleteFields(c.now, c.sharesKey(), a.previous)
	}
	if n.left == -2 {
		c.set(scripts.KindShared, scripts.FieldFence, n.fence)
	}
	if writer {
		c.set("", scripts.FieldFence, c.arg(5))
		//mutant:downgrade-fence = mine == 0 && a.last > reads
	} else if a.last > reads {
		c.set("", scripts.FieldReads, c.arg(5))
	}
	c.prolong(n, scripts.KindShared, max(a.life, c.fenceLife(a.last)))
}

// sharedRefusal returns the reply if other leases hold the name, or a waiter comes before the caller. It returns nil
// if the caller may acquire the name.
func (c *call) sharedRefusal(n *hash, a ask, writer, own bool, held string, left int64) any {
	//mutant:readers-wait 4= false
	//mutant:writer-alone 3= false
	refused, wait, free := held != "" && !own && (writer || ofWriter.MatchString(held)), left, int64(0)
	fields := []any{}
	if !refused && n.queued && a.mode == "acquire" {
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
	place := c.join(n, scripts.KindShared, a.waiter)
	return []any{int64(quorum.Held), (wait + 999) / 1000, free, fields, place, n.fence, c.now}
}

// callersTime returns the time at which an extension judges a share: the earlier of this master's time and the caller's
// time, which is the new deadline less the TTL.
func (c *call) callersTime(life int64) int64 {
	if life == 0 {
		return c.now
	}
	return min(c.now, int64(c.number(5))-(life-kept)*1000)
}

func (c *call) sharedExtend() any {
	n, life := c.read(), c.millis(3)
	if other := c.otherKind(&n, scripts.KindShared); other != nil {
		return other
	}
	mine := c.ends(c.arg(2), c.callersTime(life))
	if mine == 0 {
		held, left := c.shareHolder(c.now)
		reads, there := c.typed(c.key(1), Hash).field(scripts.FieldReads)
		if there && plainNumber(reads) > n.top {
			n.fence = reads
		}
		return []any{int64(quorum.Missing), leftOf(held, left), n.fence, c.now}
	}
	if refusal := c.refuse(float64(life-kept), c.arg(4)); refusal != nil {
		return refusal
	}
	if life > 0 {
		c.share(c.arg(2), mine, life, c.arg(5))
		c.prolong(&n, scripts.KindShared, life)
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
	n, present := c.read(), 0
	if c.otherKind(&n, scripts.KindShared) != nil {
		return int64(0)
	}
	if c.arg(1) != "" {
		c.typed(c.sharesKey(), SortedSet)
		ids := append([]string{c.arg(1)}, c.args[min(7, len(c.args)):]...)
		present = min(1, c.state.deleteFields(c.now, c.sharesKey(), ids...))
	}
	c.endWait(&n, scripts.KindShared)
	if !c.exists(c.queue()) || !c.drop() {
		return int64(present)
	}
	held, _ := c.shareHolder(int64(c.timeOfRollBack()))
	switch {
	case held == "":
		c.wake(waiter{})
	case !ofWriter.MatchString(held):
		c.invite(waiter{})
	}
	return int64(present)
}
