package feed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/pipe"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A Source describes one master and the subscription connections to it.
type Source struct {
	Target   *wire.Target
	Settings pipe.Settings
	Redial   wire.Redial
	// ServerFunc, if set, returns the run id of the server to which calls are sent, or "" while no server is connected.
	// Subscriptions must use the same server, because a script that publishes a message counts only the receivers on the
	// server that runs the script. They may have another one, because a node or a sentinel with outdated data may have
	// reported another address.
	ServerFunc func() string
	// IntroductionFunc, if set, returns commands that are sent first. Their replies do not matter.
	IntroductionFunc func() [][]string
}

// retryRefused is how long a feed waits after a refused SUBSCRIBE. The next heartbeat then sends SUBSCRIBE again.
const retryRefused = 30 * time.Second

// A feed is the subscription connection of a Hub to one master.
type feed struct {
	hub  *Hub
	ctx  context.Context // ends with the master
	src  Source
	wake chan struct{} // wakes await

	server string // run id of the server of this connection; if unknown, that of the first ServerFunc call

	// Guarded by hub.mu.
	pipe    *pipe.Pipe                  // nil while there is no connection
	refused map[*Subscription]time.Time // when the server refused SUBSCRIBE on this connection
}

// run connects and serves while there are subscriptions, until the master's context ends.
func (f *feed) run() {
	redial := f.src.Redial
	for f.await() {
		c, _, err := redial.Connect(f.ctx, f.src.Target, f.greet)
		began := time.Now()
		if err == nil && f.serve(c) {
			continue
		}
		redial.Rest(f.ctx, time.Since(began))
	}
}

// greet reads the run id of the server, which stays unknown if the server refuses INFO. It does not check whether the
// server is fit, because a client that receives a message queries all masters before it relies on the message.
func (f *feed) greet(c *wire.Conn) (op string, err error) {
	if f.src.ServerFunc == nil {
		return "", nil
	}
	return c.Ask([]wire.Question{{Op: "info", Command: []string{"INFO", "server"}, TakeFunc: func(reply any) error {
		text, _ := redis.String(reply, nil)
		_, rest, _ := strings.Cut(text, "\nrun_id:")
		f.server, _, _ = strings.Cut(rest, "\r")
		return nil
	}}})
}

// await waits for a subscription. It returns false when the master's context ends.
func (f *feed) await() bool {
	for !f.hub.wanted() {
		select {
		case <-f.wake:
		case <-f.ctx.Done():
			return false
		}
	}
	return f.ctx.Err() == nil
}

// errUnused ends a connection without subscriptions.
var errUnused = errors.New("pool: no subscription")

// serve runs one connection until the connection ends, and reports whether the connection was closed because it was not
// used. Outstanding commands are dropped, because the next connection subscribes to all channels again.
func (f *feed) serve(c *wire.Conn) (unused bool) {
	h, settings := f.hub, f.src.Settings
	settings.BeatFunc, settings.PushFunc = f.beat, f.push
	p := pipe.New(c, false, settings)
	if f.src.IntroductionFunc != nil {
		for _, words := range f.src.IntroductionFunc() {
			p.Queue(frame.Command("client", words...), func(any, error) {})
		}
	}
	h.mu.Lock()
	f.pipe, f.refused = p, make(map[*Subscription]time.Time)
	for _, s := range h.open {
		f.subscribeLocked(s)
	}
	h.mu.Unlock()

	_, cause := p.Run(f.ctx, 0) // ignore other causes: the connection for calls reports why a master is down

	h.mu.Lock()
	defer h.mu.Unlock()
	f.pipe = nil
	for _, s := range h.open {
		s.confirmed &^= 1 << f.src.Settings.Master
	}
	return errors.Is(cause, errUnused)
}

// subscribeLocked sends SUBSCRIBE for s, or wakes await if there is no connection.
func (f *feed) subscribeLocked(s *Subscription) {
	if f.pipe != nil {
		f.sendLocked("SUBSCRIBE", s, func(refused bool) { f.answered(s, refused) })
		return
	}
	select {
	case f.wake <- struct{}{}:
	default: // await is already notified
	}
}

// unsubscribeLocked sends UNSUBSCRIBE for s, which has been closed. If the user has no right to UNSUBSCRIBE, messages
// continue to arrive, and are dropped.
func (f *feed) unsubscribeLocked(s *Subscription) {
	if f.pipe != nil {
		delete(f.refused, s)
		f.sendLocked("UNSUBSCRIBE", s, func(bool) {})
	}
}

// sendLocked sends a command of s, and calls doneFunc when the server has executed or refused it. If the reply belongs
// to another command, or is a transient error, sendLocked ends the connection. The feed then connects again, with
// growing pauses.
func (f *feed) sendLocked(command string, s *Subscription, doneFunc func(refused bool)) {
	op := strings.ToLower(command)
	f.pipe.Queue(frame.Command(op, command, s.channel), func(reply any, _ error) {
		refusal, refused := reply.(redis.Error)
		switch {
		case fault.Transient(refusal):
			f.pipe.Kill(op, refusal)
		case !refused && !answers(reply, op, s.channel):
			f.pipe.Kill(op, fmt.Errorf("unexpected reply to %s: %.40q", command, reply))
		default:
			doneFunc(refused)
		}
	})
}

// answered records the reply to the SUBSCRIBE of s. A heartbeat retries a refused SUBSCRIBE; see retryRefused.
func (f *feed) answered(s *Subscription, refused bool) {
	master := f.src.Settings.Master
	f.hub.mu.Lock()
	active := s.openLocked() && !refused
	switch {
	case active:
		s.confirmed |= 1 << master
	case s.openLocked():
		f.refused[s] = time.Now()
	}
	f.hub.mu.Unlock()
	if active {
		s.listener.Resubscribed(master)
	}
}

// answers reports whether reply belongs to a command, in lower case, with this argument.
func answers(reply any, command, arg string) bool {
	parts, _ := reply.([]any)
	if len(parts) < 2 {
		return false
	}
	kind, _ := parts[0].([]byte)
	about, _ := parts[1].([]byte)
	return string(kind) == command && string(about) == arg
}

// beat ends the connection if there is no subscription, or if calls are now sent to another server. It sends a PING,
// whose reply is PONG, an array if there are subscriptions, or a refusal. It retries each SUBSCRIBE that was refused
// retryRefused ago or earlier.
func (f *feed) beat() (next time.Duration) {
	if !f.hub.wanted() {
		f.pipe.Kill("unused", errUnused)
	}
	if f.left() {
		f.pipe.Kill("subscription", errors.New("another server has replaced it"))
	}
	f.pipe.Queue(frame.Command("ping", "PING"), func(reply any, _ error) {
		if _, refused := reply.(redis.Error); !refused && reply != "PONG" && !answers(reply, "pong", "") {
			f.pipe.Kill("ping", fmt.Errorf("unexpected reply to PING: %.40q", reply))
		}
	})
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	for s, at := range f.refused {
		if time.Since(at) >= retryRefused {
			delete(f.refused, s)
			f.subscribeLocked(s)
		}
	}
	return f.src.Settings.Heartbeat
}

// left reports whether calls are now sent to a server other than that of this connection.
func (f *feed) left() bool {
	if f.src.ServerFunc == nil {
		return false
	}
	now := f.src.ServerFunc()
	if f.server == "" {
		f.server = now
	}
	return now != "" && now != f.server
}

// push reports whether value is a message. If so, push calls the listener of the channel, if there is a listener.
func (f *feed) push(value any) (isMessage bool) {
	parts, _ := value.([]any)
	if len(parts) != 3 {
		return false
	}
	kind, _ := parts[0].([]byte)
	channel, _ := parts[1].([]byte)
	payload, isMessage := parts[2].([]byte)
	if string(kind) != "message" || !isMessage {
		return false
	}
	f.hub.mu.Lock()
	s := f.hub.open[string(channel)]
	f.hub.mu.Unlock()
	if s != nil {
		s.listener.Message(f.src.Settings.Master, string(payload))
	}
	return true
}
