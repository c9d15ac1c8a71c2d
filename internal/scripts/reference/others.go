package reference

import (
	"regexp"
	"strings"

	"github.com/redlock-go/redlock/internal/quorum"
)

func (c *call) extend() any {
	lock, ttl := c.key(1), c.millis(3)
	lease, _ := c.typed(lock, Hash).field(c.arg(2))
	depth := depthOf.FindString(lease)
	if depth == "" || depth == "0" {
		return []any{int64(quorum.Missing), c.state.TTL(c.now, lock), c.get(c.fenceKey(), "0"), c.now}
	}
	if refusal := c.refuse(float64(ttl), c.arg(5)); refusal != nil {
		return refusal
	}
	numbers, value := strings.TrimPrefix(lease, depth), ""
	if found := numbersAndValue.FindStringSubmatch(numbers); found != nil {
		numbers, value = found[1], found[2]
	}
	//mutant:value-version = c.argOr(6, value)
	after := laterValue(value, c.argOr(6, ""))
	if depth != c.arg(4) || after != value {
		c.state.setField(c.now, lock, c.arg(2), c.arg(4)+numbers+after)
	}
	if ttl > 0 && c.state.TTL(c.now, lock) < ttl {
		c.state.Expire(c.now, lock, ttl)
	}
	return int64(quorum.Granted)
}

// refuse returns the reply to an extension that the admission record forbids, or nil if the extension is allowed. An
// extension with the expected record is always allowed.
func (c *call) refuse(ttl float64, epoch string) any {
	expected := c.arg(1)
	if expected == "" {
		return nil
	}
	record := c.record(c.key(2))
	if record == "" || strings.HasPrefix(record, expected) || !refused(record, ttl, number(epoch)) {
		return nil
	}
	return []any{int64(quorum.Refused), record, c.now}
}

var (
	depthOf = regexp.MustCompile(`^[0-9]+~?`)
	rest    = regexp.MustCompile(`(?s) .*`)

	numbersAndValue = regexp.MustCompile(`(?s)^( [0-9]+ [0-9]+)(.*)$`)
)

func (c *call) release() any {
	lock, present := c.key(1), 0
	//mutant:minimum-kept = int64(0)
	keep := int64(number(c.argOr(3, "0")))
	for i, id := range c.args {
		if i > 0 && i < 6 || keep == 0 && id == "" && len(c.args) > 1 {
			continue // no lease
		}
		lease, there := c.typed(lock, Hash).field(id)
		if !there {
			continue
		}
		present = 1
		if keep > 0 {
			c.state.setField(c.now, lock, id, "0"+rest.FindString(lease))
		} else {
			c.state.deleteFields(c.now, lock, id)
		}
	}
	if present > 0 && keep > 0 && c.state.TTL(c.now, lock) > keep {
		c.state.Expire(c.now, lock, keep)
	}
	c.endWait()
	if c.exists(c.queue()) && !c.exists(lock) {
		c.drop()
		c.wake(waiter{})
	}
	return int64(present)
}

// endWait removes the waiter of a release from the queue, or puts it back, and raises the fence.
func (c *call) endWait() {
	if id, rank := c.argOr(4, ""), c.argOr(5, ""); id != "" {
		if rank == "" || c.join(waiter{id: id, rank: c.millis(5), asked: c.number(6)}) < 0 {
			c.leave(id)
		}
	}
	if ballot := number(c.argOr(2, "0")); ballot > 0 {
		_, top := c.fence(c.fenceKey(), "0")
		//mutant:reader-tombstone = false
		//mutant:tombstone = false
		if ballot > top && ballot <= max(float64(c.now), top)+window {
			c.raise(c.fenceKey(), c.arg(2))
		}
	}
}

// firstShown is the number of waiters that an inspection returns, sharesShown the number of shares of a readers-writer
// lock.
const (
	firstShown  = 10
	sharesShown = 100
)

func (c *call) inspect() any {
	lock, fields, shares, number := c.key(1), []any{}, []any{}, int64(0)
	left := c.state.TTL(c.now, lock)
	if c.state.lookup(c.now, lock).Type == Hash {
		fields = c.lease(lock)
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
	fence, record := c.get(c.fenceKey(), "0"), c.record(c.key(2))
	queue := c.typed(c.queue(), SortedSet).Fields
	first := []any{}
	for _, f := range queue[:min(firstShown, len(queue))] {
		first = append(first, f.Name)
	}
	return []any{fields, left, fence, c.now, record, int64(len(queue)), first, number, shares}
}
