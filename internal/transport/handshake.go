package transport

import (
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// greet reads the identity of a server, checks that it is fit, and loads the scripts: see questions. The age of an INFO
// is measured from the request, because the reply may be delayed or this process may sleep. If the INFO is older than
// both the heartbeat interval and the timeout, greet requests it once more.
func (s *session) greet(conn *wire.Conn) (op string, err error) {
	cfg := &s.m.cfg
	s.addr, s.local = conn.Addr, conn.Local()
	most := max(cfg.Heartbeat, cfg.Timeout)
	for range 2 {
		asked := cfg.Clock.Now()
		s.lastInfo.Store(&asked)
		if op, err = conn.Ask(s.questions(asked)); err != nil || s.age() <= most {
			return op, err
		}
	}
	return "info", fault.Timeout("two replies to INFO took too long, the second one %v", s.age())
}

const backlogTTL = "repl-backlog-ttl"

// questions returns the commands of a handshake that begins at asked.
//
// A connection needs only what it cannot lock without: the login and the database, which package wire asks for, INFO,
// and in a cluster the slot of the bucket. All other commands are optional, that is, made by [wire.Optional]: a server
// that refuses one of them, for whatever reason, is still up. What it refused is then missing as follows.
//
//	SCRIPT LOAD                     scripts are sent with their text
//	CONFIG GET repl-backlog-ttl     the TTL of the backlog is unknown
//	CONFIG GET *appendfsync*        a master that is declared durable is believed, with a warning
//	CONFIG GET min-replicas-*       a master with failover is not fit, unless two holders are allowed
//	CLIENT SETNAME, CLIENT SETINFO  operators do not see the client's name
func (s *session) questions(asked clock.Instant) (list []wire.Question) {
	list = s.m.cfg.failover.allQuestions(&s.stop) // INFO is judged by the settings, which must be known before
	list = append(list, s.askInfo(asked))
	for _, script := range s.m.cfg.scripts {
		list = append(list, wire.Optional("script load", func(_ any, refusal redis.Error) {
			s.byText = s.byText || refusal != ""
		}, "SCRIPT", "LOAD", script.Text))
	}
	list = append(list, wire.ConfigGet(backlogTTL, func(settings map[string]string, _ error) {
		if seconds, known := settings[backlogTTL]; known {
			s.info.BacklogTTL = time.Duration(Number(seconds)) * time.Second
		}
	}))
	if s.m.cfg.failover == nil { // a master with failover cannot be durable
		list = append(list, wire.ConfigGet(fsyncSettings, s.info.readFsync))
	}
	return append(list, s.introduce()...)
}

// askInfo returns the question that reads the identity of the server, and checks that it is fit.
func (s *session) askInfo(asked clock.Instant) wire.Question {
	cfg := &s.m.cfg
	return wire.Question{Op: "info", Command: []string{"INFO"}, TakeFunc: func(reply any) (err error) {
		var fields map[string]string
		if s.info, fields, err = cfg.ReadInfo(asked, reply); err == nil {
			err = s.info.verdict(cfg)
		}
		if err == nil {
			err = cfg.failover.verdict(&s.stop, &s.info, fields)
		}
		return err
	}}
}

// ReadInfo parses the reply to an INFO that was sent at asked. It also returns the fields of the reply.
func (cfg *Config) ReadInfo(asked clock.Instant, reply any) (info Info, fields map[string]string, _ error) {
	text, err := redis.String(reply, nil)
	switch {
	case fault.IsCode(err, "NOPERM"):
		user := cfg.UserName()
		return info, nil, fault.New(fmt.Sprintf("refused: the user %q may not run INFO (%v): without INFO no client can "+
			"know whether this master has restarted and lost locks, so it cannot vote; INFO is in the category @dangerous, "+
			"grant it by ACL SETUSER %s +info", user, err, user), fault.ErrRefused, err)
	case fault.IsCode(err, "NOAUTH"):
		return info, nil, fmt.Errorf("%w (no password is configured for this master)", err)
	case errors.As(err, new(redis.Error)):
		return info, nil, err
	case err != nil:
		return info, nil, fault.New(fmt.Sprintf("the reply to INFO is no text: %v", err), fault.NotRESP)
	}
	fields = InfoFields(text)
	info = infoOf(fields)
	info.readAt(cfg.Clock, asked)
	return info, fields, nil
}
