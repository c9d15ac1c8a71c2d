package pipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// A Receiver gets the reply to one request.
type Receiver interface {
	Reply(master int, value any, err error)
}

// ReplyFunc is a Receiver for the pool's own calls. The reply may be a redis.Error; ended is why there is none.
type ReplyFunc func(reply any, ended error)

// Reply implements Receiver.
func (f ReplyFunc) Reply(_ int, reply any, ended error) { f(reply, ended) }

// Owner is whose connection it is.
type Owner struct {
	Master    int // the number that Receivers are told
	Limit     int // of calls that may be outstanding; acquires may take half of it
	Timeout   time.Duration
	Heartbeat time.Duration
	// ErrorFunc makes the error that the Receiver of a Send gets.
	ErrorFunc func(op string, cause error, unknown bool) error
	// ExplainFunc makes what has ended the connection fit for people; nil is the end of the stream.
	ExplainFunc func(error) error
	// BeatFunc is called once in a heartbeat, by a goroutine of the Pipe.
	BeatFunc func()
	// PushFunc, where there is one, is shown all that the server sends, and reports whether it was no reply.
	PushFunc func(value any) bool
}

// A request is one call that is queued or in flight. It is passed by value.
type request struct {
	call    *scripts.Call
	to      Receiver
	text    string // of the stamp
	since   int64  // when the writer took it; see Pipe.now
	counted bool   // against the limit: it is of a user
	eval    bool   // the text of the script is sent
}

// A Pipe is one connection in use.
type Pipe struct {
	conn        *wire.Conn
	owner       Owner
	base        time.Time // origin of the times of requests: measuring from it is cheaper than time.Now
	outstanding atomic.Int64
	waiting     atomic.Int64 // since of the oldest request in taken; 0 for none
	heard       atomic.Int64 // when the server last sent anything

	ended chan struct{}
	in    reader
	out   writer

	mu       sync.Mutex // guards what follows; never held while a Receiver runs, or during I/O
	wake     sync.Cond  // of the writer: there is something in the queue, or the end
	queue    []request
	inflight []request
	byText   bool // scripts that are sent once are sent with their text
	end      ending
}

// An ending says how the connection has ended.
type ending struct {
	dead     bool
	reason   error // where somebody has said
	op       string
	writeErr error
	unbegun  int // how many at the end of inflight were not begun when writing failed
}

// New makes a Pipe over c, which it owns. byText sends scripts of the kind Once with their text until one was answered.
func New(c *wire.Conn, byText bool, owner Owner) *Pipe {
	p := &Pipe{conn: c, owner: owner, base: time.Now(), ended: make(chan struct{}), byText: byText}
	p.wake.L = &p.mu
	return p
}

// now is the present time as requests carry it: nanoseconds from base, never 0.
func (p *Pipe) now() int64 { return int64(time.Since(p.base)) + 1 }

// Send queues a call of a user. With an error nothing was queued: the queue is full, or the connection has ended.
func (p *Pipe) Send(c *scripts.Call, text string, to Receiver) error {
	limit := p.owner.Limit
	if c.Script.Once {
		limit = (limit + 1) / 2
	}
	if p.outstanding.Add(1) > int64(limit) {
		p.outstanding.Add(-1)
		return fault.New(fmt.Sprintf("queue is full: %d requests are outstanding", limit), fault.ErrQueueFull)
	}
	if !p.add(request{call: c, to: to, text: text, counted: true}) {
		return p.Reason()
	}
	return nil
}

// Queue queues a call of the pool's own, without a limit, and reports whether the connection was there.
func (p *Pipe) Queue(c *scripts.Call, to ReplyFunc) bool { return p.add(request{call: c, to: to}) }

func (p *Pipe) add(r request) bool {
	p.mu.Lock()
	dead := p.end.dead
	if !dead {
		p.addLocked(r)
	}
	p.mu.Unlock()
	p.wake.Signal()
	return !dead
}

func (p *Pipe) addLocked(r request) { p.queue = append(p.queue, r) }

// Run reads and writes until the connection ends, must end, or ctx ends. The caller's goroutine is the reader. age is
// how long ago the last heartbeat was. It returns what failed and why, and leaves to Drain what has no reply.
func (p *Pipe) Run(ctx context.Context, age time.Duration) (op string, cause error) {
	var wg sync.WaitGroup
	wg.Go(p.write)
	wg.Go(func() { p.mind(ctx, age) })
	err := p.read()
	p.Kill("read", nil)
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch end := &p.end; {
	case end.reason != nil:
		op, err = end.op, end.reason
	case end.writeErr != nil && errors.Is(err, net.ErrClosed): // by the writer: its error tells more
		op, err = "write", end.writeErr
	default:
		op = "read"
	}
	return op, p.owner.ExplainFunc(err)
}

// Drain answers every request that has no reply, after Run.
func (p *Pipe) Drain(cause error) {
	begun := append(p.in.taken[p.in.next:], p.inflight...)
	unknown := max(0, len(begun)-p.end.unbegun) // a server may have answered what was not begun
	for i, r := range append(begun, p.queue...) {
		r.to.Reply(p.owner.Master, nil, p.owner.ErrorFunc(r.call.Script.Name, cause, i < unknown))
	}
}

// Kill ends the connection; the first reason counts, and nil is none. It does not wait.
func (p *Pipe) Kill(op string, reason error) {
	p.mu.Lock()
	if p.end.reason == nil && reason != nil {
		p.end.reason, p.end.op = reason, op
	}
	if !p.end.dead {
		p.end.dead = true
		close(p.ended)
		p.wake.Signal()
	}
	p.mu.Unlock()
	p.conn.Close()
}

// Reason says why the connection has ended, as far as is known; nil while it has not.
func (p *Pipe) Reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.end.dead {
		return nil
	}
	return p.owner.ExplainFunc(p.end.reason)
}

// mind ends the connection when ctx ends, or when nothing was heard from the server for the timeout while a request was
// written or being written. The time that a request spends in the queue does not count: a server that answers is up,
// however long the queue is. mind also starts heartbeats. Its timer and its times are monotonic.
func (p *Pipe) mind(ctx context.Context, age time.Duration) {
	timeout, heartbeat := p.owner.Timeout, p.owner.Heartbeat
	first := max(heartbeat-age, 0)
	beatAt := time.Now().Add(first)
	timer := time.NewTimer(min(timeout, first))
	defer timer.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-ctx.Done():
			p.Kill("close", context.Cause(ctx))
			return
		case <-timer.C:
		}
		left := p.left()
		for range mostYields {
			if left > 0 || !starved(timeout) {
				break
			}
			left = p.left() // the reader has had its turn
		}
		if left <= 0 {
			p.Kill("watchdog", fault.Timeout("no reply within %v", timeout))
			return
		}
		now := time.Now()
		if !now.Before(beatAt) {
			beatAt = now.Add(heartbeat)
			p.owner.BeatFunc()
			left = p.left()
		}
		timer.Reset(min(left, beatAt.Sub(now)))
	}
}

// mostYields bounds how often mind lets the other goroutines of a starved process run before it ends the connection.
const mostYields = 4

// starved lets every goroutine that is ready run, and reports whether that took so long that the reader may have had
// no turn since its reply arrived: the delay is then this process's own, not the server's.
func starved(timeout time.Duration) bool {
	began := time.Now()
	runtime.Gosched()
	return time.Since(began) > timeout/64
}

// left returns how long the server may still be silent: the timeout, counted from the last reply or from when the
// writer took the oldest request that has none, whichever is later. While no request waits for a reply it is the
// whole timeout, since no later request can be overdue before.
func (p *Pipe) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := p.waiting.Load()
	switch {
	case oldest != 0:
	case len(p.inflight) > 0:
		oldest = p.inflight[0].since
	default:
		return p.owner.Timeout
	}
	return p.owner.Timeout - time.Duration(p.now()-max(oldest, p.heard.Load()))
}
