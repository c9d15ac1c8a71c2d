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

// ReplyFunc is a Receiver for calls that the pool itself makes. The reply may be a redis.Error. If there is no reply,
// ended is the reason.
type ReplyFunc func(reply any, ended error)

// Reply implements Receiver.
func (f ReplyFunc) Reply(_ int, reply any, ended error) { f(reply, ended) }

// Settings says to which master a connection belongs, and what it does for it.
type Settings struct {
	Master    int // number of the master, which Receivers get
	Limit     int // maximum number of outstanding calls; acquires may use half of it
	Timeout   time.Duration
	Heartbeat time.Duration
	// ErrorFunc returns the error that the Receiver of a Send gets.
	ErrorFunc func(op string, cause error, unknown bool) error
	// ExplainFunc converts the error that ended the connection into one for users.
	ExplainFunc func(error) error
	// BeatFunc is called by a goroutine of the Pipe: first when the last heartbeat is one interval old, and then each
	// time the returned duration has passed.
	BeatFunc func() (next time.Duration)
	// PushFunc, if set, gets every value that the server sends, and reports whether the value was not a reply.
	PushFunc func(value any) bool
}

// A request is one call that is queued or in flight. It is passed by value.
type request struct {
	call    *frame.Call
	to      Receiver
	stamp   string // of the admission record
	since   int64  // when the writer took the request; see Pipe.now
	counted bool   // whether the request was made by Send, and counts towards Settings.Limit
	eval    bool   // whether to send the text of the script
}

// A Pipe is one connection in use.
type Pipe struct {
	conn        *wire.Conn
	settings    Settings
	base        time.Time    // origin of the times of requests; time.Since is cheaper than time.Now
	outstanding atomic.Int64 // number of requests that count towards Settings.Limit
	waiting     atomic.Int64 // the field since of the oldest request in taken; 0 if there is none
	lastRead    atomic.Int64 // when the server last sent anything

	ended chan struct{} // closed by Kill
	in    reader
	out   writer

	mu       sync.Mutex // guards the fields below; never held while a Receiver runs, or during I/O
	wake     sync.Cond  // wakes the writer: a request was queued, or the connection has ended
	queue    []request
	inflight []request
	byText   bool // whether to send scripts with Once set with their text
	end      ending
}

// An ending describes how the connection ended.
type ending struct {
	dead    bool   // whether the connection has ended
	op      string // the operation that failed
	reason  error
	unbegun int // number of requests at the end of inflight that were not yet encoded when writing failed
}

// New makes a Pipe over c; the Pipe owns c from then on. If byText is true, scripts with Once set are sent with their
// text until one of these calls has been answered.
func New(conn *wire.Conn, byText bool, settings Settings) *Pipe {
	p := &Pipe{conn: conn, settings: settings, base: time.Now(), ended: make(chan struct{}), byText: byText}
	p.wake.L = &p.mu
	return p
}

// now returns the present time in nanoseconds since base, plus 1, so that it is never 0.
func (p *Pipe) now() int64 { return int64(time.Since(p.base)) + 1 }

// Send queues a call of a user of the pool, with this stamp of the admission record. It returns an error, and queues
// nothing, if the queue is full or the connection has ended.
func (p *Pipe) Send(c *frame.Call, stamp string, to Receiver) error {
	limit := p.settings.Limit
	if c.Script.Once {
		limit = (limit + 1) / 2
	}
	if p.outstanding.Add(1) > int64(limit) {
		p.outstanding.Add(-1)
		return fault.New(fmt.Sprintf("queue is full: %d requests are outstanding", limit), fault.ErrQueueFull)
	}
	if !p.add(request{call: c, to: to, stamp: stamp, counted: true}) {
		return p.Reason()
	}
	return nil
}

// Queue queues a call that the pool itself makes, which does not count towards the limit. It reports whether the
// connection was open; if not, the call was not queued.
func (p *Pipe) Queue(c *frame.Call, to ReplyFunc) bool { return p.add(request{call: c, to: to}) }

func (p *Pipe) add(r request) bool {
	p.mu.Lock()
	dead := p.end.dead
	if !dead {
		p.queue = append(p.queue, r)
	}
	p.mu.Unlock()
	p.wake.Signal()
	return !dead
}

// Run reads and writes until the connection or ctx ends. The calling goroutine becomes the reader. age is the time
// since the last heartbeat. Run returns the operation that failed and the cause, and leaves requests without a reply to
// Drain.
func (p *Pipe) Run(ctx context.Context, age time.Duration) (op string, cause error) {
	var wg sync.WaitGroup
	wg.Go(p.write)
	wg.Go(func() { p.mind(ctx, age) })
	p.Kill("read", p.read())
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end.op, p.settings.ExplainFunc(p.end.reason)
}

// Drain answers every request that has no reply, with an error. It must be called after Run.
func (p *Pipe) Drain(cause error) {
	begun := append(p.in.taken[p.in.next:], p.inflight...)
	unknown := max(0, len(begun)-p.end.unbegun) // a server may even have replied to requests that were not yet written
	for i, r := range append(begun, p.queue...) {
		r.to.Reply(p.settings.Master, nil, p.settings.ErrorFunc(r.call.Script.Name, cause, i < unknown))
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
	return p.settings.ExplainFunc(p.end.reason)
}

// mind ends the connection when ctx ends, or when the server has sent nothing for the timeout while a request was
// written or being written. Time in the queue is not included, because a server that answers is up, no matter how long
// the queue is. mind also starts heartbeats. All times are monotonic.
func (p *Pipe) mind(ctx context.Context, age time.Duration) {
	timeout, heartbeat := p.settings.Timeout, p.settings.Heartbeat
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
			left = p.left() // the reader may have read a reply in the meantime
		}
		if left <= 0 {
			p.Kill("watchdog", fault.Timeout("no reply within %v", timeout))
			return
		}
		now := time.Now()
		if !now.Before(beatAt) {
			beatAt = now.Add(p.settings.BeatFunc())
			left = p.left()
		}
		timer.Reset(min(left, beatAt.Sub(now)))
	}
}

// mostYields is how many times mind yields to the other goroutines of a starved process before it ends the connection.
const mostYields = 4

// starved lets every ready goroutine run, and reports whether this took long. If so, this process may be overloaded
// rather than the server: a reply may have arrived that the reader could not read yet.
func starved(timeout time.Duration) bool {
	began := time.Now()
	runtime.Gosched()
	return time.Since(began) > timeout/64
}

// left returns how long the server may still be silent. The timeout begins with the last data from the server or, if
// later, when the writer took the oldest unanswered request. If no request awaits a reply, left returns the whole
// timeout, because a new request cannot be overdue earlier.
func (p *Pipe) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := p.waiting.Load()
	switch {
	case oldest != 0:
	case len(p.inflight) > 0:
		oldest = p.inflight[0].since
	default:
		return p.settings.Timeout
	}
	return p.settings.Timeout - time.Duration(p.now()-max(oldest, p.lastRead.Load()))
}
