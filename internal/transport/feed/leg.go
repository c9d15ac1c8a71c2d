package feed

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// retryRefused is how long a feed waits before it tries a refused channel again. It does so on the next heartbeat.
const retryRefused = 30 * time.Second

// A leg is one channel on one connection.
type leg struct {
	channel   string
	active    bool   // SUBSCRIBE is confirmed, and UNSUBSCRIBE has not been sent
	out       string // the outstanding command; "" if none
	refused   error  // why the server refused the channel; nil if it did not
	refusedAt time.Time
	// Listeners with seq <= notified have been notified by Resubscribed. Listeners with seq <= requested will be notified
	// when the command out is confirmed.
	notified, requested uint64
}

// orderLocked sends the next command that the channel needs, unless one is outstanding. A confirmed channel with a new
// listener is subscribed to again, and the reader notifies the new listener when the server confirms it.
func (f *feed) orderLocked(channel string) {
	listeners, l := f.hub.topics[channel], f.legs[channel]
	newest := uint64(0)
	if n := len(listeners); n > 0 {
		newest = listeners[n-1].seq
	}
	if l == nil {
		l = &leg{channel: channel}
		f.legs[channel] = l
	}
	switch {
	case l.out != "":
		return
	case newest == 0 && !l.active:
		delete(f.legs, channel)
		return
	case newest == 0:
		l.out, l.active = "UNSUBSCRIBE", false
	case l.refused == nil && (!l.active || l.notified < newest):
		l.out, l.requested = "SUBSCRIBE", newest
	default:
		return
	}
	op := strings.ToLower(l.out)
	f.pipe.Queue(frame.Command(op, l.out, channel), func(reply any, _ error) {
		if err := f.answered(l, reply); err != nil {
			f.pipe.Kill(op, err)
		}
	})
}

// answered processes the reply to the command of a leg: it records the result, notifies the listeners concerned, and
// sends the next command. An error means that the reply belongs to another command, or is a refusal that may not
// recur. The caller must then end the connection, which is made again with growing pauses. A refused channel is
// retried after a while. A user without the right to UNSUBSCRIBE continues to receive messages, which are dropped.
func (f *feed) answered(l *leg, reply any) error {
	refusal, refused := reply.(redis.Error)
	switch {
	case fault.Transient(refusal):
		return refusal
	case !refused && !answers(reply, l.out, l.channel):
		return fmt.Errorf("the server has answered %s by %.40q", l.out, reply)
	}
	h := f.hub
	h.mu.Lock()
	var list []*Subscription
	if l.out == "SUBSCRIBE" {
		f.err = nil
		if refused {
			l.refused, l.refusedAt = refusal, time.Now()
		} else {
			for _, s := range h.topics[l.channel] {
				if l.notified < s.seq && s.seq <= l.requested {
					list = append(list, s)
				}
			}
			l.active, l.notified = true, l.requested
		}
	}
	l.out = ""
	f.orderLocked(l.channel)
	h.mu.Unlock()
	for _, s := range list {
		if !s.closed.Load() {
			s.listener.Resubscribed(f.src.Owner.Master)
		}
	}
	return nil
}

// answers reports whether reply belongs to a command with this argument.
func answers(reply any, command, arg string) bool {
	parts, _ := reply.([]any)
	if len(parts) < 2 {
		return false
	}
	kind, _ := parts[0].([]byte)
	about, _ := parts[1].([]byte)
	return string(kind) == strings.ToLower(command) && string(about) == arg
}

// beat ends the connection if the calls now go to another server. It also sends a PING, whose reply has two forms or
// is a refusal, and retries the refused channels that are due.
func (f *feed) beat() (next time.Duration) {
	if f.left() {
		f.pipe.Kill("subscription", errLeft)
	}
	f.pipe.Queue(frame.Command("ping", "PING"), func(reply any, _ error) {
		if _, refused := reply.(redis.Error); !refused && reply != "PONG" && !answers(reply, "PONG", "") {
			f.pipe.Kill("ping", fmt.Errorf("the server has answered PING by %.40q", reply))
		}
	})
	h := f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for channel, l := range f.legs {
		if l.refused != nil && time.Since(l.refusedAt) >= retryRefused {
			l.refused = nil
			f.orderLocked(channel)
		}
	}
	return f.src.Owner.Heartbeat
}

// errLeft ends a connection to a server if the calls now go to another server.
var errLeft = errors.New("another server has taken its place")

// left reports whether the calls go to another server than this connection.
func (f *feed) left() bool {
	if f.src.ServerFunc == nil {
		return false
	}
	now := f.src.ServerFunc()
	if f.server == "" {
		f.server = now
	}
	//mutant:subscription-follows = false
	return now != "" && now != f.server
}

// push handles a message by calling the listeners of its channel, if there are any.
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
	h := f.hub
	h.mu.Lock()
	list := h.topics[string(channel)]
	h.mu.Unlock()
	text := string(payload)
	for _, s := range list {
		if !s.closed.Load() {
			s.listener.Message(f.src.Owner.Master, s.channel, text)
		}
	}
	return true
}
