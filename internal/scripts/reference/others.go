package reference

import (
	"math"
	"strings"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

func (c *call) extend() any {
	lock, life := c.key(1), c.millis(3)
	fields := c.typed(lock, Hash)
	text, _ := fields.field(c.arg(2))
	left := c.state.TTL(c.now, lock)
	own := left >= 0 && left < fields.kept() // whether it has expired by the master's clock
	found := leaseText.FindStringSubmatch(text)
	if found == nil || found[1][0] == '0' || own && (life == 0 || c.number(6)-float64(life-kept)*1000 > number(found[4])) {
		fence, there := fields.field(scripts.FieldFence)
		if !there {
			fence = "0"
		}
		if kind, there := fields.field(scripts.FieldKind); there {
			return []any{int64(quorum.OtherKind), kind, c.now}
		}
		if own || fields.leases() < 1 {
			left = -2
		} else {
			left = max(-1, left-fields.kept())
		}
		return []any{int64(quorum.Missing), left, fence, c.now}
	}
	if refusal := c.refuse(float64(life-kept), c.arg(4)); refusal != nil {
		return refusal
	}
	after := laterValue(found[5], c.argOr(7, ""))
	//mutant:extended-deadline = found[4]
	until := max(found[4], c.arg(6))
	c.state.SetField(c.now, lock, c.arg(2), c.arg(5)+found[2]+until+after)
	if life > 0 && left-fields.kept() < life-kept {
		c.state.Expire(c.now, lock, life-kept+fields.kept())
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

func (c *call) release() any {
	lock, present := c.key(1), 0
	if len(c.args) == 1 && c.state.deleteFields(c.now, lock, c.args[0]) == 1 {
		present = 1
		if len(c.typed(lock, Hash).Fields) == 1 {
			return int64(1)
		}
	}
	n := c.read()
	if n.kind != "" {
		return int64(0)
	}
	keep := int64(number(c.argOr(3, "0")))
	for i, id := range c.args {
		if i > 0 && i < 7 || keep == 0 && (id == "" || len(c.args) == 1) {
			continue // no lease
		}
		text, there := c.typed(lock, Hash).field(id)
		if !there {
			continue
		}
		if keep == 0 {
			present = 1
			c.state.deleteFields(c.now, lock, id)
		} else if found := leaseText.FindStringSubmatch(text); found != nil {
			present = 1
			c.state.SetField(c.now, lock, id, "0"+found[2]+min(found[4], c.arg(4)))
			if n.left == -1 || n.left-n.kept > keep-kept {
				c.state.Expire(c.now, lock, keep-kept+n.kept)
			}
		}
	}
	c.endWait(&n, "")
	if !c.exists(c.queue()) {
		return int64(present)
	}
	if c.free(&n) && c.drop() {
		c.wake(waiter{})
	}
	return int64(present)
}

// timeOfRollBack returns this master's time or, if the release puts a waiter back, the ballot of the attempt if that is
// earlier.
func (c *call) timeOfRollBack() float64 {
	if c.argOr(6, "") == "" {
		return float64(c.now)
	}
	return min(float64(c.now), c.number(7))
}

// free reports whether no lease is left, or it had expired by both clocks before this call. n was read before.
func (c *call) free(n *hash) bool {
	h := c.typed(c.key(1), Hash)
	if count := h.leases(); count != 1 || !n.over() {
		return count < 1
	}
	time := c.timeOfRollBack()
	for _, f := range h.Fields {
		if found := leaseText.FindStringSubmatch(f.Value); found != nil && number(found[4]) >= time {
			return false
		}
	}
	return true
}

// endWait removes the waiter of a release from the queue, or puts it back, and raises the fence.
func (c *call) endWait(n *hash, marks string) {
	if id, rank := c.argOr(5, ""), c.argOr(6, ""); id != "" {
		if rank == "" || c.join(n, marks, waiter{id: id, rank: c.millis(6), asked: c.number(7)}) < 0 {
			c.leave(id)
		}
	}
	if ballot := number(c.argOr(2, "0")); ballot > 0 {
		c.raise(n, marks, ballot)
	}
}

// firstShown is the number of waiters that an inspection returns, sharesShown the number of shares of a readers-writer
// lock.
const (
	firstShown  = 10
	sharesShown = 100
)

func (c *call) inspect() any {
	fields, shares, number, left := []any{}, []any{}, int64(0), int64(-2)
	n, time := c.read(), c.now
	asked := c.argOr(1, "") != ""
	if asked {
		time = int64(c.number(1))
	}
	switch n.kind {
	case scripts.KindShared:
		for _, f := range c.typed(c.sharesKey(), SortedSet).Fields {
			if f.score() < min(c.now, time) {
				continue
			}
			if number++; number <= sharesShown {
				shares = append(shares, f.Name, f.Value)
			}
			left = max(1, (f.score()-c.now+1+999)/1000)
		}
	case "":
		if l := c.holder(); l.id != "" && !n.over() {
			fields, left = []any{l.id, l.text}, n.left-n.kept
		} else if l.id != "" && (asked || n.left == -1) && float64(time) <= l.ends {
			fields, left = []any{l.id, l.text}, int64(math.Floor((l.ends-float64(time))/1000))+1
		}
	}
	record := c.record(c.key(2))
	queue := c.typed(c.queue(), SortedSet).Fields
	first := []any{}
	for _, f := range queue[:min(firstShown, len(queue))] {
		first = append(first, f.Name)
	}
	return []any{fields, left, n.fence, c.now, record, int64(len(queue)), first, number, shares, n.kind}
}
