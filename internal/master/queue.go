package master

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/teeth"
)

// set is what ZRANGE and ZADD find: the key's value, where it is a sorted set or nothing.
func (c *call) set(key string) Value {
	v := c.state.lookup(c.now, key)
	if v.Type != None && v.Type != SortedSet {
		panic(WrongType)
	}
	return v
}

// head is the first of a queue: ZRANGE 0 0.
func (c *call) head(queue string) (waiter string, queued bool) {
	if v := c.set(queue); len(v.Fields) > 0 {
		return v.Fields[0].Name, true
	}
	return "", false
}

// waiterTTL is for how long a waiter counts that is not heard of again, in ms.
var waiterTTL = scripts.Millis(scripts.WaiterTTL)

// enqueue puts the caller of an acquire into the queue, or marks it as alive where it is there, with its offer where one
// is made, drops its neighbours that no longer count where it asks again or its ballot says so, and returns its place.
func (c *call) enqueue(offers bool) int64 {
	queue, alive, waiter := c.key(4), c.key(5), c.arg(7)
	c.set(queue)
	entry := strconv.FormatInt(c.now/1000+waiterTTL, 10)
	if offers {
		entry += " " + strings.Join([]string{strconv.FormatInt(c.now/1000+int64(c.number(10)), 10), c.arg(3), c.arg(4), c.last(), c.arg(2)}, " ")
	}
	joins := c.place(queue, waiter) < 0
	c.state.setScore(c.now, queue, waiter, c.arg(8))
	c.hash(alive)
	c.state.setField(c.now, alive, waiter, entry)
	c.state.Expire(c.now, queue, waiterTTL)
	c.state.Expire(c.now, alive, waiterTTL)
	place := c.place(queue, waiter)
	if joins && math.Mod(c.number(4), 8) != 0 {
		return int64(place)
	}
	fields := c.state.lookup(c.now, queue).Fields
	for _, near := range slices.Clone(fields[max(place-1, 0):min(place+2, len(fields))]) {
		if entry, counts := c.hash(alive).field(near.Name); near.Name != waiter && (!counts || until(entry) < c.now/1000) {
			c.dequeue(queue, alive, near.Name)
		}
	}
	return int64(c.place(queue, waiter))
}

func (c *call) place(queue, waiter string) int {
	return slices.IndexFunc(c.state.lookup(c.now, queue).Fields, func(f Field) bool { return f.Name == waiter })
}

func (c *call) dequeue(queue, alive, waiter string) {
	c.set(queue)
	c.state.deleteFields(c.now, queue, waiter)
	c.hash(alive)
	c.state.deleteFields(c.now, alive, waiter)
}

// until is the time until which a waiter counts, of what is kept of it.
func until(entry string) int64 {
	end := strings.IndexFunc(entry, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(entry)
	}
	ms, _ := strconv.ParseInt(entry[:end], 10, 64)
	return ms
}

var (
	waiterName = regexp.MustCompile(`(?s)^>[0-9]+:(.*):[0-9]+$`)
	offer      = regexp.MustCompile(`(?s)^[0-9]+ ([0-9]+) ([0-9]+) ([0-9]+) ([0-9]+) (.+)$`)
)

// handOn gives the name to the first waiter that counts and is heard, and tells it.
func (c *call) handOn(lock string, end ending) {
	queue, alive, marker := c.key(3), c.key(4), c.key(5)
	inboxes := marker[:max(0, len(marker)-len("marker"))] + "inbox:"
	what := "R"
	if end.gives == "F" {
		what = "F"
	}
	for {
		waiter, queued := c.head(queue)
		if !queued {
			return
		}
		heard, id, word := 0, "", ""
		found := waiterName.FindStringSubmatch(waiter)
		entry, counts := c.hash(alive).field(waiter)
		if found != nil && counts && until(entry) >= c.now/1000 {
			letter, inbox := what, inboxes+found[1]
			top := c.top()
			if id, word = c.write(lock, entry, top, end); id != "" {
				letter = "G"
			} else if what == "R" {
				word = cmp.Or(strings.TrimLeft(top, "0"), "0") + ":"
			}
			if c.env.Hears != nil {
				heard = c.env.Hears(inbox)
			}
			if heard > 0 {
				c.out = append(c.out, Message{Channel: inbox, Payload: letter + strconv.Itoa(len(waiter)) + ":" + waiter + word + lock})
			} else if id != "" {
				c.state.deleteFields(c.now, lock, id)
			}
		}
		if heard == 0 || what == "R" {
			c.dequeue(queue, alive, waiter)
		}
		if heard > 0 {
			if what == "R" && id == "" {
				c.hash(lock)
				c.state.setField(c.now, lock, waiter, "0")
				c.state.Expire(c.now, lock, end.reserve)
			}
			return
		}
	}
}

// top is the bar, or the ballot that this release bars where that is more; "" where the bar is no number.
func (c *call) top() string {
	bar := c.state.lookup(c.now, c.key(2))
	switch {
	case bar.Type == None:
		bar.Text = "0"
	case bar.Type != String || bar.Text == "" || strings.Trim(bar.Text, "0123456789") != "":
		return ""
	}
	if number(bar.Text) < c.number(3) {
		return c.arg(3)
	}
	return bar.Text
}

// write writes the hold that a waiter offers, where this release may, and returns its id and what is told of it.
func (c *call) write(lock, entry, top string, end ending) (id, word string) {
	f := offer.FindStringSubmatch(entry)
	if f == nil || end.gives == "F" || c.arg(1) == "" || number(f[1]) < float64(c.now/1000) {
		return "", ""
	}
	marker := c.state.lookup(c.now, c.key(5))
	if marker.Type != String || marker.Text != c.arg(1) || c.state.lookup(c.now, lock).Type != None {
		return "", ""
	}
	first, last, now, window := number(f[3]), number(f[4]), float64(c.now), end.window
	if top == "" || first <= number(top) && !teeth.NoBar || (first < now-window || last > now+window) && !teeth.NoBounds {
		return "", ""
	}
	c.state.setField(c.now, lock, f[5], "1")
	c.state.Expire(c.now, lock, int64(number(f[2])))
	if end.usual {
		c.raiseBar(c.key(2), f[4])
	} else {
		c.setBar(c.key(2), f[4], end.keep)
	}
	return f[5], strconv.Itoa(len(f[5])) + ":" + f[5] + f[3] + ":" + strconv.Itoa(len(marker.Text)) + ":" + marker.Text
}

// setScore is ZADD: the members of a sorted set stay in the order of their scores, then of their bytes.
func (s *State) setScore(now int64, key, member, score string) {
	v := s.lookup(now, key)
	v.Type = SortedSet
	v.Fields = slices.DeleteFunc(slices.Clone(v.Fields), func(f Field) bool { return f.Name == member })
	v.Fields = append(v.Fields, Field{member, score})
	slices.SortFunc(v.Fields, func(a, b Field) int {
		return cmp.Or(cmp.Compare(number(a.Value), number(b.Value)), strings.Compare(a.Name, b.Name))
	})
	s.put(key, v)
}
