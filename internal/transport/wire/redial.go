package wire

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// Redial makes repeated attempts to connect to one server. The pauses between attempts double from Min to Max. Each
// pause is shortened by a random fraction of up to a half.
//
// An attempt that times out doubles the time limit of the next one, up to longest, and the next pause is at least a
// quarter of its time limit: if the host of the client or of the server is overloaded, attempts that are given up and
// repeated too early prevent each other from succeeding. longest is four seconds, because a network that works again is
// noticed at the next SYN, and the kernel sends them after 1, 3 and 7 seconds.
type Redial struct {
	Min, Max time.Duration
	Known    bool // whether a connection of this kind was in use before; such an attempt gets the next free slot

	pause time.Duration
	limit time.Duration // of the next attempt; 0 means the DialTimeout
}

const longest = 4 * time.Second

// Connect waits for a slot of t.Slots, and calls the function of the same name. The time in which it waits is bounded
// by the same limit as the attempt, but does not count for the attempt.
func (r *Redial) Connect(
	ctx context.Context, t *Target, step func(*Conn) (op string, err error),
) (c *Conn, op string, err error) {
	within := max(r.limit, t.DialTimeout)
	op = "connect"
	leave, err := t.Slots.enter(ctx, t.Network+" "+t.Addr, within, r.Known)
	if err == nil {
		c, op, err = t.connect(ctx, within, step)
		leave()
	}
	if fault.IsTimeout(err) {
		r.limit = min(2*within, longest)
		r.pause = min(max(r.pause, within/4), r.Max)
	}
	return c, op, err
}

// Rest waits for the next pause, or until ctx ends. If the last connection was used for Max or longer, Rest does not
// wait, the pauses begin at Min again, and so does the time limit of an attempt.
func (r *Redial) Rest(ctx context.Context, used time.Duration) {
	if used >= r.Max {
		r.pause, r.limit = 0, 0
		return
	}
	d := max(r.pause, r.Min)
	r.pause = min(2*d, r.Max)
	select {
	case <-time.After(d - time.Duration(jitter.Int64N(int64(d)/2+1))):
	case <-ctx.Done():
	}
}
