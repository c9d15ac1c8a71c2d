package reference

import (
	"strings"

	"github.com/redlock-go/redlock/internal/scripts"
)

func (c *call) extend() any {
	lock, ttl := c.key(1), c.millis(3)
	depth, there := c.typed(lock, Hash).field(c.arg(2))
	if !there || depth == "0" {
		return []any{int64(scripts.Missing), c.state.TTL(c.now, lock), c.get(c.key(2), "0"), c.now}
	}
	if c.arg(1) != "" {
		record := c.get(c.key(3), "")
		if !strings.HasPrefix(record, c.arg(1)) && record != "" && refused(record, float64(ttl), c.number(5)) {
			return []any{int64(scripts.Refused), record, c.now}
		}
	}
	if depth != c.arg(4) {
		c.state.setField(c.now, lock, c.arg(2), c.arg(4))
	}
	if ttl > 0 && c.state.TTL(c.now, lock) < ttl {
		c.state.Expire(c.now, lock, ttl)
	}
	return int64(scripts.Granted)
}

func (c *call) release() any {
	lock, fence, present := c.key(1), c.key(2), 0
	keep, ballot := int64(number(c.argOr(3, "0"))), c.argOr(2, "0")
	for i, id := range c.args {
		other := i > 0 && i < 6 // no grant
		if other || keep == 0 && c.args[0] == "" || !c.typed(lock, Hash).has(id) {
			continue
		}
		present = 1
		if keep > 0 {
			c.state.setField(c.now, lock, id, "0")
		}
	}
	switch {
	case present > 0 && keep == 0:
		c.state.Delete(c.now, lock)
	case present > 0 && c.state.TTL(c.now, lock) > keep:
		c.state.Expire(c.now, lock, keep)
	}
	if id, rank := c.argOr(4, ""), c.argOr(5, ""); id != "" {
		if rank == "" || c.join(waiter{id: id, rank: c.millis(5), asked: c.number(6)}) < 0 {
			c.leave(id)
		}
	}
	if ballot := number(ballot); ballot > 0 {
		_, top := c.fence(fence)
		if ballot > top && ballot <= max(float64(c.now), top)+window {
			c.raise(fence, c.arg(2))
		}
	}
	if c.exists(c.key(3)) && !c.exists(lock) {
		c.drop()
		c.tell(waiter{})
	}
	return int64(present)
}

// firstShown is how many waiters an inspection shows, sharesShown how many shares of a lock with readers.
const (
	firstShown  = 10
	sharesShown = 100
)

func (c *call) inspect() any {
	lock, fields, shares, number := c.key(1), []any{}, []any{}, int64(0)
	left := c.state.TTL(c.now, lock)
	if c.state.lookup(c.now, lock).Type == Hash {
		fields = c.page(lock)
	} else {
		for _, f := range c.typed(lock, SortedSet).Fields {
			if f.score() <= c.now {
				continue
			}
			if number++; number <= sharesShown {
				shares = append(shares, f.Name, f.Value)
			}
		}
	}
	fence, record := c.get(c.key(2), "0"), c.get(c.key(4), "")
	queue := c.typed(c.key(3), SortedSet).Fields
	first := []any{}
	for _, f := range queue[:min(firstShown, len(queue))] {
		first = append(first, f.Name)
	}
	return []any{fields, left, fence, c.now, record, int64(len(queue)), first, number, shares}
}
