package feed

import (
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool/internal/fault"
)

// retryRefused is how long a channel is left alone that the master refuses; it is tried again on the next heartbeat.
const retryRefused = 30 * time.Second

// A leg is one channel on one connection.
type leg struct {
	channel   string
	standing  bool   // SUBSCRIBE is confirmed, UNSUBSCRIBE is not sent
	out       string // the command that is outstanding; "" for none
	refused   error  // why it is left alone
	refusedAt time.Time
	// The listeners up to seq told have been told by Gap; those up to asked will be when out is confirmed.
	told, asked uint64
}

// orderLocked sends the command that brings a channel nearer to what is wanted, unless one is outstanding. A standing
// channel with a new listener is subscribed to once more: the confirmation has the reader tell the new one.
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
	case newest == 0 && !l.standing:
		delete(f.legs, channel)
		return
	case newest == 0:
		l.out, l.standing = "UNSUBSCRIBE", false
	case l.refused == nil && (!l.standing || l.told < newest):
		l.out, l.asked = "SUBSCRIBE", newest
	default:
		return
	}
	op := strings.ToLower(l.out)
	f.pipe.Queue(scripts.Command(op, l.out, channel), func(reply any, _ error) {
		if err := f.answered(l, reply); err != nil {
			f.pipe.Kill(op, err)
		}
	})
}

// answered books the answer to the command of a leg, tells the listeners that it concerns, and looks at what is wanted
// now. An error ends the connection: the server has answered something else, or refused in a way that may pass; the
// connection is then made anew with growing pauses. A channel that is refused is left alone for a while. A user who may
// not UNSUBSCRIBE goes on getting messages, which are dropped.
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
				if l.told < s.seq && s.seq <= l.asked {
					list = append(list, s)
				}
			}
			l.standing, l.told = true, l.asked
		}
	}
	l.out = ""
	f.orderLocked(l.channel)
	h.mu.Unlock()
	for _, s := range list {
		if !s.closed.Load() {
			s.listener.Gap(f.src.Owner.Master)
		}
	}
	return nil
}

// answers reports whether a reply is that to a command with this argument.
func answers(reply any, command, arg string) bool {
	parts, _ := reply.([]any)
	if len(parts) < 2 {
		return false
	}
	kind, _ := parts[0].([]byte)
	about, _ := parts[1].([]byte)
	return string(kind) == strings.ToLower(command) && string(about) == arg
}

// beat sends a PING, whose answer has two forms, or is that the user may not. It has refused channels tried again.
func (f *feed) beat() {
	f.pipe.Queue(scripts.Command("ping", "PING"), func(reply any, _ error) {
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
}

// push takes a message, and calls the listeners of its channel, where it has any still.
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
