package reference

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/redlock-go/redlock/internal/scripts"
)

// Times of the queue, in us, and bounds of the work of one script.
const (
	waiterCounts = int64(scripts.WaiterCounts / 1000)
	toldCounts   = int64(scripts.ToldCounts / 1000)
	mostDropped  = 500
	mostWoken    = 8
)

// A waiter is in the queue, or may join it. An empty id means that there is no waiter.
type waiter struct {
	id    string
	rank  int64
	asked float64 // the first ballot of its acquire
}

// before reports whether w comes before a member of the queue.
func (w waiter) before(f Field) bool {
	return w.id != "" && cmp.Or(cmp.Compare(w.rank, f.score()), strings.Compare(w.id, f.Name)) < 0
}

func (c *call) leave(id string) {
	for _, key := range []string{c.queue(), c.waitersKey()} {
		c.typed(key, SortedSet)
		c.state.deleteFields(c.now, key, id)
	}
	c.endQueue()
}

// endQueue deletes the field queue if there is no queue, and reports whether there is one.
func (c *call) endQueue() bool {
	if c.exists(c.queue()) {
		return true
	}
	c.state.deleteFields(c.now, c.key(1), scripts.FieldQueue)
	return false
}

// join puts a waiter into the queue and returns its place, or -1 if it does not join.
func (c *call) join(n *hash, marks string, w waiter) int64 {
	if w.id == "" || w.asked < float64(c.now-waiterCounts) {
		return -1
	}
	queue, waiters := c.queue(), c.waitersKey()
	c.typed(queue, SortedSet)
	c.state.SetScore(c.now, queue, w.id, w.rank)
	c.typed(waiters, SortedSet)
	c.state.SetScore(c.now, waiters, w.id, c.now+waiterCounts)
	c.state.Expire(c.now, queue, (waiterCounts+1e6)/1000)
	c.state.Expire(c.now, waiters, (waiterCounts+1e6)/1000)
	if n.left == -2 {
		c.set(marks, scripts.FieldFence, n.fence)
	}
	c.set("", scripts.FieldQueue, "1")
	c.prolong(n, marks, (waiterCounts+1e6)/1000)
	return int64(c.state.lookup(c.now, queue).place(w.id))
}

// drop removes waiters whose time has passed, and reports whether there is still a queue.
func (c *call) drop() bool {
	var dead []string
	for _, f := range c.typed(c.waitersKey(), SortedSet).Fields {
		if f.score() > c.now || len(dead) == mostDropped {
			break
		}
		dead = append(dead, f.Name)
	}
	if len(dead) > 0 {
		c.typed(c.queue(), SortedSet)
		c.state.deleteFields(c.now, c.queue(), dead...)
		c.state.deleteFields(c.now, c.waitersKey(), dead...)
	}
	return c.endQueue()
}

var (
	ownerOfWaiter = regexp.MustCompile(`(?s)^[0-9]+:([^:]*):`)
	ownerOfLease  = regexp.MustCompile(`(?s)^([^:]*):`)
	lingers       = regexp.MustCompile(`^[0-9]+~`)
	stemOfLock    = regexp.MustCompile(`(?s)^.*?:\{`)
)

// inboxOf returns the inbox of an owner, with the prefix of the lock with this key.
func inboxOf(lock, owner string) string {
	return strings.TrimSuffix(stemOfLock.FindString(lock), "{") + "inbox:" + owner
}

// wake wakes the first waiter, unless that is the caller or comes after the caller. left is how long the woken waiter
// counts, in us. woken is false if no waiter comes before the caller.
func (c *call) wake(caller waiter) (left int64, woken bool) {
	lock, waiters := c.key(1), c.waitersKey()
	for range mostWoken {
		queue := c.typed(c.queue(), SortedSet).Fields
		if len(queue) == 0 || queue[0].Name == caller.id || caller.before(queue[0]) {
			return 0, false
		}
		first, counts := queue[0].Name, int64(0)
		if text, ok := c.typed(waiters, SortedSet).field(first); ok {
			counts = Field{Value: text}.score()
		}
		if counts > c.now {
			if c.hint(lock, first) != 0 {
				//mutant:one-second = max(counts, toldCounts)
				counts = min(counts, c.now+toldCounts)
				c.state.SetScore(c.now, waiters, first, counts)
				return counts - c.now, true
			}
		}
		c.leave(first)
	}
	return 0, true
}

// hint publishes a message to the owner of a waiter or a lease, and returns how many clients received it.
func (c *call) hint(lock, id string) int {
	owner := ""
	for _, pattern := range []*regexp.Regexp{ownerOfWaiter, ownerOfLease} {
		if found := pattern.FindStringSubmatch(id); found != nil {
			owner = found[1]
			break
		}
	}
	return c.publish(inboxOf(lock, owner), id+"\n"+lock)
}

func (c *call) publish(channel, payload string) int {
	if c.env.Publish == nil {
		return 0
	}
	return c.env.Publish(channel, payload)
}
