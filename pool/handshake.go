package pool

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// greet asks a server who it is and judges it, and loads the scripts. INFO counts from when it was asked: a reply may
// be held up on its way, or this process may sleep. One that is older than a heartbeat may be is asked for once more.
func (s *session) greet(c *wire.Conn) (op string, err error) {
	cfg := &s.m.cfg
	s.addr = c.Addr
	most := max(cfg.heartbeat, cfg.timeout)
	for range 2 {
		s.asked = cfg.clock.Now()
		s.heard.Store(&s.asked)
		if op, err = c.Ask(s.questions()); err != nil || cfg.clock.Since(s.asked) <= most {
			return op, err
		}
	}
	return "info", fault.Timeout("it has said who it is only after %v, twice", cfg.clock.Since(s.asked))
}

const backlogTTL = "repl-backlog-ttl"

// questions are those of a handshake. A user who may neither load scripts nor see the configuration is not refused:
// the scripts are then sent with their text once, and the backlog's TTL is unknown.
func (s *session) questions() []wire.Question {
	cfg := &s.m.cfg
	list := []wire.Question{{
		Op: "info", Command: []any{"INFO"}, TakeFunc: func(reply any) (err error) {
			var fields map[string]string
			if s.info, fields, err = cfg.readInfo(s.asked, reply); err == nil {
				err = s.info.verdict(cfg)
			}
			if err == nil {
				err = cfg.failover.verdict(&s.stop, &s.info, fields)
			}
			return err
		},
	}}
	if cfg.failover != nil {
		list = append(s.stop.questions(cfg.tag), list...)
	}
	for _, script := range scripts.All {
		list = append(list, wire.Question{
			Op: "script load", Command: []any{"SCRIPT", "LOAD", script.Text}, TakeFunc: func(reply any) error {
				refusal, refused := reply.(redis.Error)
				if s.byText = s.byText || refused; refused && !unavailable(refusal) {
					return refusal
				}
				return nil
			},
		})
	}
	return append(list, wire.Question{
		Op: "config get", Command: []any{"CONFIG", "GET", backlogTTL}, TakeFunc: func(reply any) error {
			pair, _ := redis.StringMap(reply, nil)
			if seconds, known := pair[backlogTTL]; known {
				s.info.BacklogTTL, s.info.BacklogKnown = time.Duration(number(seconds))*time.Second, true
			}
			return nil
		},
	})
}

// unavailable reports whether a command was refused because the user may not run it, or the server does not know it.
func unavailable(refusal redis.Error) bool {
	return fault.Code(refusal) == "NOPERM" || unknownCommand(refusal)
}

func unknownCommand(refusal redis.Error) bool {
	return strings.HasPrefix(strings.ToLower(string(refusal)), "err unknown command")
}

// readInfo reads the reply of INFO, and returns its fields as well.
func (cfg *config) readInfo(asked clock.Instant, reply any) (i Info, fields map[string]string, _ error) {
	text, err := redis.String(reply, nil)
	switch {
	case fault.IsCode(err, "NOPERM"):
		user := cmp.Or(cfg.User, "default")
		return i, nil, fault.New(fmt.Sprintf("refused: the user %q may not run INFO (%v): without it nobody can know "+
			"whether this master has restarted and lost locks, so it gets no vote; INFO is in the category @dangerous, "+
			"grant it by ACL SETUSER %s +info", user, err, user), fault.ErrRefused, err)
	case fault.IsCode(err, "NOAUTH"):
		return i, nil, fmt.Errorf("%w (no password is configured for this master)", err)
	case err != nil:
		return i, nil, err
	}
	fields = infoFields(text)
	i = infoOf(fields)
	i.RTT = cfg.clock.Since(asked)
	i.Read = asked.Add(i.RTT / 2)
	return i, fields, nil
}
