package transport

import (
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// greet reads the identity of a server, checks that it is fit, and loads the scripts. The age of an INFO is measured
// from the request, because the reply may be delayed or this process may sleep. If the INFO is older than both the
// heartbeat interval and the timeout, greet requests it once more.
func (s *session) greet(c *wire.Conn) (op string, err error) {
	cfg := &s.m.cfg
	s.addr, s.local = c.Addr, c.Local()
	most := max(cfg.heartbeat, cfg.timeout)
	for range 2 {
		asked := cfg.clock.Now()
		s.lastInfo.Store(&asked)
		if op, err = c.Ask(s.questions(asked)); err != nil || s.age() <= most {
			return op, err
		}
	}
	return "info", fault.Timeout("two replies to INFO took too long, the second one %v", s.age())
}

const backlogTTL = "repl-backlog-ttl"

// questions returns the commands of a handshake that begins at asked. A server whose user may not run SCRIPT LOAD or
// CONFIG GET is not refused: scripts that are not loaded are sent with their text, and without CONFIG GET the TTL of
// the backlog is unknown.
func (s *session) questions(asked clock.Instant) []wire.Question {
	cfg := &s.m.cfg
	list := []wire.Question{{
		Op: "info", Command: []string{"INFO"}, TakeFunc: func(reply any) (err error) {
			var fields map[string]string
			if s.info, fields, err = cfg.readInfo(asked, reply); err == nil {
				err = s.info.verdict(cfg)
			}
			if err == nil {
				err = cfg.failover.verdict(&s.stop, &s.info, fields)
			}
			return err
		},
	}}
	if cfg.failover != nil {
		list = append(s.stop.questions(cfg.tag, true, true), list...)
	}
	for _, script := range cfg.scripts {
		list = append(list, wire.Question{
			Op: "script load", Command: []string{"SCRIPT", "LOAD", script.Text}, TakeFunc: func(reply any) error {
				refusal, refused := reply.(redis.Error)
				if s.byText = s.byText || refused; refused && !unavailable(refusal) {
					return refusal
				}
				return nil
			},
		})
	}
	list = append(list, configGet(backlogTTL, func(settings map[string]string, _ error) {
		if seconds, known := settings[backlogTTL]; known {
			s.info.BacklogTTL, s.info.BacklogKnown = time.Duration(number(seconds))*time.Second, true
		}
	}))
	return append(list, s.introduce()...)
}

// unavailable reports whether a command was refused because the user has no right to it or the server does not know it.
func unavailable(refusal redis.Error) bool {
	return fault.Code(refusal) == "NOPERM" || unknownCommand(refusal)
}

func unknownCommand(refusal redis.Error) bool {
	return strings.HasPrefix(strings.ToLower(string(refusal)), "err unknown command")
}

// askServer reads the run id of the server of a connection. server is "" if the server refuses INFO.
func askServer(c *wire.Conn) (server, op string, err error) {
	op, err = c.Ask([]wire.Question{{
		Op: "info", Command: []string{"INFO", "server"}, TakeFunc: func(reply any) error {
			text, _ := redis.String(reply, nil)
			server = infoFields(text)["run_id"]
			return nil
		},
	}})
	return server, op, err
}

// readInfo parses the reply to an INFO that was sent at asked. It also returns the fields of the reply.
func (cfg *Config) readInfo(asked clock.Instant, reply any) (i Info, fields map[string]string, _ error) {
	text, err := redis.String(reply, nil)
	switch {
	case fault.IsCode(err, "NOPERM"):
		user := cfg.userName()
		return i, nil, fault.New(fmt.Sprintf("refused: the user %q may not run INFO (%v): without INFO no client can know "+
			"whether this master has restarted and lost locks, so it cannot vote; INFO is in the category @dangerous, "+
			"grant it by ACL SETUSER %s +info", user, err, user), fault.ErrRefused, err)
	case fault.IsCode(err, "NOAUTH"):
		return i, nil, fmt.Errorf("%w (no password is configured for this master)", err)
	case err != nil:
		return i, nil, err
	}
	fields = infoFields(text)
	i = infoOf(fields)
	i.readAt(cfg.clock, asked)
	return i, fields, nil
}
