package redlock

import "time"

// The defaults of handing on.
const (
	// DefaultHandOns is how often a hold passes between goroutines of one Locker before it is released.
	DefaultHandOns = 32
	// DefaultHandOnTime is for how long, since the masters were asked, a hold is handed on.
	DefaultHandOnTime = 100 * time.Millisecond
)

// Handing on: where other goroutines of this Locker wait for the name, the last Unlock gives the hold to the first of
// them instead of releasing it. To the masters it is the same hold. Here it is a new one: the Lock and the contexts of
// the one who unlocked have ended, and the successor has a larger token, the next of the block of ballots that the
// acquire has reserved. That is safe since the bar is the end of the block: whoever gets the name from the masters
// later has a larger token than all of the block.
//
// It happens a bounded number of times and for a bounded time, so that other processes get their turn.

// handOnLocked makes the first who is parked the holder, and returns it with its hold; nil where h is to be released.
// h.mu is held, and h is live and at its last Unlock.
func (h *hold) handOnLocked() (*hold, *parked) {
	if h.token >= h.blockEnd || h.coming > 0 || h.line == nil {
		return nil, nil
	}
	now := h.l.now()
	if now.Sub(h.since) >= h.handOnTime {
		return nil, nil
	}
	select {
	case <-h.l.closing:
		return nil, nil
	default:
	}
	left := h.lease.left(now)
	if !h.maxEnd.IsZero() {
		left = min(left, h.maxEnd.Sub(now))
	}
	return h.l.lines.handOn(h, func(p *parked) *hold {
		if left < p.cfg.least() || h.lease.ttl > p.cfg.ttl { // too little, or more than was asked for
			return nil
		}
		next := &hold{
			l: h.l, name: h.name, seq: h.seq, token: h.token + 1, blockEnd: h.blockEnd, since: h.since, lease: h.lease,
			held: h.held, has: h.has, of: h.of, sent: h.sent, ballot: h.ballot, several: h.several, sentTo: h.sentTo, index: -1,
		}
		next.words.Store(h.words.Load())
		next.goBy(p.cfg)
		if next.maxHold > 0 {
			next.maxEnd = now.Add(next.maxHold)
		}
		h.next = next
		return next
	})
}

// latest is the hold that h has become by being handed on, h itself where it was not.
func (h *hold) latest() *hold {
	for {
		h.mu.Lock()
		next := h.next
		h.mu.Unlock()
		if next == nil {
			return h
		}
		h = next
	}
}
