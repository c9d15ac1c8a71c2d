package waitqueue

// levels holds the calls of a local queue by priority and then by seq. The time that a call needs to join, to leave or
// to be chosen does not depend on how many calls wait: all calls of the Locker share one mutex, and thousands of them
// may end at one instant.
type levels struct {
	top *level // of the highest priority; nil if no call waits
}

// A level is the list of the calls of one priority. It is never empty.
type level struct {
	priority    int
	n           int // number of calls
	first, last *Call
	lower       *level
}

// len returns the number of calls.
func (w levels) len() (n int) {
	for v := w.top; v != nil; v = v.lower {
		n += v.n
	}
	return n
}

// first returns the first call; nil if there is none.
func (w levels) first() *Call {
	if w.top == nil {
		return nil
	}
	return w.top.first
}

// insert puts c behind the calls of a higher priority and the earlier calls of its own priority. It returns the number
// of calls ahead of c.
func (w *levels) insert(c *Call) (ahead int) {
	link := &w.top
	for *link != nil && (*link).priority > c.Priority {
		ahead += (*link).n
		link = &(*link).lower
	}
	v := *link
	switch {
	case v == nil || v.priority < c.Priority:
		*link = &level{priority: c.Priority, n: 1, first: c, last: c, lower: v}
		return ahead
	case c.seq < v.first.seq: // c was the contender, and contenders leave a level in its order
		c.next, v.first.prev, v.first = v.first, c, c
	default: // c is the latest call of its priority
		ahead += v.n
		c.prev, v.last.next, v.last = v.last, c, c
	}
	v.n++
	return ahead
}

// remove removes c, which must be one of the calls.
func (w *levels) remove(c *Call) {
	link := &w.top
	for (*link).priority != c.Priority {
		link = &(*link).lower
	}
	v := *link
	if v.n--; v.n == 0 {
		*link = v.lower
		return
	}
	if c.prev == nil {
		v.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		v.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
}
