package pool

import (
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// A greeting is what the handshake has brought.
type greeting struct {
	Info
	clockless bool          // INFO has no clock, Time is from TIME
	asked     clock.Instant // when INFO was asked
	took      time.Duration // how long its reply took
	loaded    bool          // the server has the scripts
}

// greet reads INFO and judges it, and loads the scripts.
//
// What INFO says counts from when it was asked: of what the server has been since, nobody knows. A reply may be held up
// on its way, or this process may sleep. So INFO that is older than a heartbeat may be is asked for once more.
func (cfg *config) greet(c *wire.Conn) (g greeting, op string, err error) {
	if g, err = cfg.readFit(c); err != nil {
		return g, "info", err
	}
	var about Info
	if g.loaded, err = prepare(c, &about); err != nil {
		return g, "script load", err
	}
	loaded, most := g.loaded, max(cfg.heartbeat, cfg.timeout)
	if cfg.clock.Since(g.asked) > most {
		if g, err = cfg.readFit(c); err == nil && g.took > most {
			err = fault.Timeout("it has said who it is only after %v, twice", g.took)
		}
	}
	g.loaded, g.BacklogTTL, g.BacklogKnown = loaded, about.BacklogTTL, about.BacklogKnown
	return g, "info", err
}

// readFit is readInfo of a server that is fit.
func (cfg *config) readFit(c *wire.Conn) (greeting, error) {
	g, _, err := cfg.readInfo(c)
	if err == nil {
		err = g.verdict(cfg.allowEviction)
	}
	return g, err
}

// readInfo returns the reply of INFO as well.
func (cfg *config) readInfo(c *wire.Conn) (g greeting, text string, err error) {
	asked := cfg.clock.Now()
	start := asked
	if text, err = redis.String(c.Do("INFO")); err != nil {
		return g, "", cfg.infoError(err)
	}
	g = greeting{Info: parseInfo(text), asked: asked, took: cfg.clock.Since(asked)}
	if g.Time == 0 { // a server whose INFO has no clock
		g.clockless = true
		start = cfg.clock.Now()
		if g.Time, err = parseTime(c.Do("TIME")); err != nil {
			return g, "", fmt.Errorf("TIME: %w", err)
		}
	}
	g.RTT = cfg.clock.Since(start)
	g.Read = start.Add(g.RTT / 2)
	return g, text, nil
}

// infoError tells a user without the right to INFO from everything else.
func (cfg *config) infoError(err error) error {
	switch {
	case fault.IsCode(err, "NOPERM"):
		return infoDenied(cfg.user, err)
	case fault.IsCode(err, "NOAUTH"):
		return fmt.Errorf("%w (no password is configured for this master)", err)
	}
	return err
}

// parseTime reads the reply of TIME, in microseconds.
func parseTime(reply any, err error) (int64, error) {
	parts, err := redis.Int64s(reply, err)
	if err != nil {
		return 0, err
	}
	if len(parts) != 2 {
		return 0, fmt.Errorf("unexpected reply of %d elements", len(parts))
	}
	return parts[0]*int64(time.Second/time.Microsecond) + parts[1], nil
}

const backlogTTL = "repl-backlog-ttl"

// prepare caches the scripts, and reads the backlog's TTL into info, in one round trip. A user who may do neither is
// not refused: the scripts are then sent with their text once, and the TTL is unknown.
//
// All is written while the replies are read: over a connection without a buffer, a writer that does not read blocks for
// ever.
func prepare(c *wire.Conn, info *Info) (loaded bool, err error) {
	written := make(chan error, 1)
	go func() { written <- writePreparations(c) }()
	loaded, err = readPrepared(c, info)
	if err != nil {
		c.Close() // ends the writer, too
	}
	if failed := <-written; err == nil {
		err = failed
	}
	return loaded, err
}

func writePreparations(c *wire.Conn) error {
	for _, s := range scripts.All {
		if err := c.Send("SCRIPT", "LOAD", s.Text); err != nil {
			return err
		}
	}
	if err := c.Send("CONFIG", "GET", backlogTTL); err != nil {
		return err
	}
	return c.Flush()
}

func readPrepared(c *wire.Conn, info *Info) (loaded bool, err error) {
	loaded = true
	for _, s := range scripts.All {
		value, err := c.Receive()
		if err != nil {
			return false, err
		}
		if reply, refused := value.(redis.Error); refused {
			if fault.Code(reply) != "NOPERM" {
				return false, reply
			}
			loaded = false
		} else if sha, _ := redis.String(value, nil); sha != s.SHA {
			return false, fmt.Errorf("%s: the server's SHA-1 is %.40q, not %s", s.Name, sha, s.SHA)
		}
	}
	value, err := c.Receive()
	if err != nil {
		return false, err
	}
	if pair, err := redis.Strings(value, nil); err == nil && len(pair) == 2 && pair[0] == backlogTTL {
		info.BacklogTTL, info.BacklogKnown = time.Duration(number(pair[1]))*time.Second, true
	}
	return loaded, nil
}
