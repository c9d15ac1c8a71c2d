package pipe

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A Receiver gets the reply to one request.
type Receiver interface {
	Reply(master int, value any, err error)
}

// ReplyFunc is a Receiver for the pool's own calls. The reply may be a redis.Error. If there is no reply, ended is the
// reason.
type ReplyFunc func(reply any, ended error)

// Reply implements Receiver.
func (f ReplyFunc) Reply(_ int, reply any, ended error) { f(reply, ended) }

// Owner describes the master that a connection belongs to.
type Owner struct {
	Master    int // the number that Receivers get
	Limit     int // maximum number of outstanding calls; acquires may use half of it
	Timeout   time.Duration
	Heartbeat time.Duration
	// ErrorFunc returns the error for the Receiver of a Send.
	ErrorFunc func(op string, cause error, unknown bool) error
	// ExplainFunc converts the error that ended the connection into one for users.
	ExplainFunc func(error) error
	// BeatFunc is called by a goroutine of the Pipe after the first heartbeat interval, and then again after each time
	// that it returns.
	BeatFunc func() (next time.Duration)
	// PushFunc, if set, gets every value that the server sends, and reports whether the value was not a reply.
	PushFunc func(value any) bool
}

// A request is one call that is queued or in flight. It is passed by value.
type request struct {
	call    *frame.Call
	to      Receiver
	text    string // text of the stamp
	since   int64  // when the writer took it; see Pipe.now
	counted bool   // a call of a user, which is included in the limit
	eval    bool   // send the text of the script
}

// A Pipe is one connection in use.
type Pipe struct {
	conn        *wire.Conn
	owner       Owner
	base        time.Time // origin of the times of requests; time.Since is cheaper than time.Now
	outstanding atomic.Int64
	waiting     atomic.Int64 // the field since of the oldest request in taken; 0 if there is none
	lastRead    atomic.Int64 // when the server last sent anything

	ended chan struct{}
	in    reader
	out   writer

	mu       sync.Mutex // guards the fields below; never held while a Receiver runs, or during I/O
	wake     sync.Cond  // wakes the writer: a request was queued, or the connection has ended
	queue    []request
	inflight []request
	byText   bool // send scripts of the kind Once with their text
	end      ending
}

// An ending describes how the connection ended.
type ending struct {
	dead    bool
	op      string
	reason  error // why it ended
	unbegun int   // number of requests at the end of inflight that had not been started when writing failed
}

// New makes a Pipe over c; the Pipe owns c from then on. If byText is set, scripts of the kind Once are sent with
// their text until one of these calls has been answered.
func New(c *wire.Conn, byText bool, owner Owner) *Pipe {
	p := &Pipe{conn: c, owner: owner, base: time.Now(), ended: make(chan struct{}), byText: byText}
	p.wake.L = &p.mu
	return p
}

// now returns the present time in the form that requests carry: nanoseconds since base, never 0.
func (p *Pipe) now() int64 { return int64(time.Since(p.base)) + 1 }

// Send queues a call of a user. If it returns an error, nothing was queued: the queue is full, or the connection has
// ended.
func (p *Pipe) Send(c *frame.Call, text string, to Receiver) error {
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

// Queue queues one of the pool's own calls, without a limit, and reports whether the connection was still open.
func (p *Pipe) Queue(c *frame.Call, to ReplyFunc) bool { return p.add(request{call: c, to: to}) }

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

// Run reads and writes until the connection ends, must end, or ctx ends. The calling goroutine becomes the reader.
// age is the time since the last heartbeat. Run returns the operation that failed and the cause, and leaves requests
// without a reply to Drain.
func (p *Pipe) Run(ctx context.Context, age time.Duration) (op string, cause error) {
	var wg sync.WaitGroup
	wg.Go(p.write)
	wg.Go(func() { p.mind(ctx, age) })
	p.Kill("read", p.read())
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end.op, p.owner.ExplainFunc(p.end.reason)
}

// Drain answers every request that has no reply, with an error. It must be called after Run.
func (p *Pipe) Drain(cause error) {
	begun := append(p.in.taken[p.in.next:], p.inflight...)
	unknown := max(0, len(begun)-p.end.unbegun) // a server may have replied to requests that were not yet written
	for i, r := range append(begun, p.queue...) {
		r.to.Reply(p.owner.Master, nil, p.owner.ErrorFunc(r.call.Script.Name, cause, i < unknown))
	}
}

// Kill ends the connection without waiting. Only the first reason is kept.
func (p *Pipe) Kill(op string, reason error) {
	p.mu.Lock()
	if !p.end.dead {
		p.end.dead, p.end.op, p.end.reason = true, op, reason
		close(p.ended)
		p.wake.Signal()
	}
	p.mu.Unlock()
	p.conn.Close()
}

// Reason returns why the connection ended. It is nil while the connection is open.
func (p *Pipe) Reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.end.dead {
		return nil
	}
	return p.owner.ExplainFunc(p.end.reason)
}

// mind ends the connection when ctx ends, or when the server has sent nothing for the timeout while a request was
// written or being written. Time in the queue is not included, because a server that answers is up, no matter how long
// the queue is. mind also starts heartbeats. It uses monotonic time.
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
			left = p.left() // the reader has had a chance to run
		}
		if left <= 0 {
			p.Kill("watchdog", fault.Timeout("no reply within %v", timeout))
			return
		}
		now := time.Now()
		if !now.Before(beatAt) {
			beatAt = now.Add(p.owner.BeatFunc())
			left = p.left()
		}
		timer.Reset(min(left, beatAt.Sub(now)))
	}
}

// mostYields is how many times mind yields to the other goroutines of a starved process before it ends the connection.
const mostYields = 4

// starved lets every goroutine that is ready run, and reports whether that took so long that a reply may have arrived
// that the reader could not read yet. The delay is then in this process, not in the server.
func starved(timeout time.Duration) bool {
	began := time.Now()
	runtime.Gosched()
	return time.Since(began) > timeout/64
}

// left returns how long the server may still be silent. The timeout is measured from the last data that the server
// sent, or from the time when the writer took the oldest request without a reply if that was later. If no request
// waits for a reply, left returns the whole timeout, since no later request can be overdue before that.
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
	//mutant:time-in-queue = p.owner.Timeout - time.Duration(p.now()-oldest)
	return p.owner.Timeout - time.Duration(p.now()-max(oldest, p.lastRead.Load()))
}
