package pool

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// A failover is what a master has that others replace by one of its replicas. When it is cut off together with some
// programs, it goes on for them while a replica is promoted for the rest, and both give locks. So it votes only where
// it stops by itself before that: it takes writes only while all its replicas have been heard of lately.
type failover struct {
	// ruleFunc tells what the promotion of a replica goes by. It does not block; ok is false while nothing is known. It is
	// nil where the master says it itself.
	ruleFunc func() (rule promotion, ok bool)
	twoHold  bool // somebody has said that two may hold a lock; see AllowTwoHolders
	// followFunc calls found with where the master is now, each time that this was asked, until ctx ends.
	followFunc func(ctx context.Context, found func(addr string))
}

// A promotion is when a replica is promoted.
type promotion struct {
	replicas int           // that are known, whether or not they are connected
	after    time.Duration // for how long the master must be silent
}

// stopping are the settings by which a master takes no writes without its replicas.
type stopping struct {
	replicas int           // min-replicas-to-write
	lag      time.Duration // min-replicas-max-lag
	err      error         // why they cannot be read
	rule     promotion     // as a node of a cluster says
}

// slack is by how much later a master stops than min-replicas-max-lag says: it counts in whole seconds, and looks once
// a second.
const slack = 2 * time.Second

// longestLag is the most for min-replicas-max-lag, and Redis's default. It is fixed: of a server that was replaced
// nobody knows what it had, nor after what silence it was replaced, since its nodes, or its sentinels then, may have
// had other times.
const longestLag = 10 * time.Second

// longestTimeout is the most for [WithTimeout]. A master that is frozen while a replica is promoted does what was sent
// to it, once it wakes. The last that is sent to it leaves here a heartbeat and a timeout after it was last heard of
// (see stale); the promoted one must still wait then, and waits for longestLag + slack.
const longestTimeout = longestLag + slack - DefaultHeartbeat

const stoppingSettings = "min-replicas-*"

// take reads the answer to CONFIG GET min-replicas-*.
func (s *stopping) take(reply any) {
	pair, err := redis.StringMap(reply, nil)
	s.replicas = int(number(pair["min-replicas-to-write"]))
	s.lag = time.Duration(number(pair["min-replicas-max-lag"])) * time.Second
	if err == nil && len(pair) < 2 {
		err = fmt.Errorf("it has no min-replicas-to-write")
	}
	s.err = err
}

// danger says why a lock may be held twice while the master is cut off, in a sentence; "" where it cannot be.
func (s *stopping) danger(rule promotion, i *Info) (what, do string) {
	replicas := max(rule.replicas, i.Replicas, 1)
	longest := min(longestLag, (rule.after - slack).Truncate(time.Second))
	switch {
	case !i.stopsScripts():
		return fmt.Sprintf("it is Redis %.40s, where scripts write whatever min-replicas-to-write says", i.Version),
			"use Redis 6.2.7 or later"
	case s.err != nil:
		return fmt.Sprintf("its min-replicas-to-write cannot be read (%v)", s.err), "grant it: +config|get"
	case s.replicas < replicas:
		return fmt.Sprintf("its min-replicas-to-write is %d, and it has %d replicas of which any may be promoted",
			s.replicas, replicas), fmt.Sprintf("CONFIG SET min-replicas-to-write %d on each of its servers", replicas)
	case longest < time.Second:
		return fmt.Sprintf("a replica is promoted after %v of silence, and a master notices only within 3s that it is cut "+
			"off", rule.after), "raise down-after-milliseconds, of a cluster cluster-node-timeout, to 5000 or more"
	case s.lag <= 0 || s.lag > longest:
		return fmt.Sprintf("its min-replicas-max-lag is %v, and a replica is promoted after %v of silence: it must be from "+
				"1s to %v", s.lag, rule.after, longest),
			fmt.Sprintf("CONFIG SET min-replicas-max-lag %d on each of its servers", longest/time.Second)
	}
	return "", ""
}

// alone says that a master is cut off now: it would still take writes until it notices.
func (s *stopping) alone(fields map[string]string) error {
	near := 0
	for i := range int(number(fields["connected_slaves"])) {
		if lag, ok := lagOf(fields, i); ok && lag <= s.lag {
			near++
		}
	}
	if near >= s.replicas {
		return nil
	}
	return fault.Refused(fmt.Sprintf("it has heard of %d replicas within %v, and takes locks only with %d "+
		"(min-replicas-to-write): it may be cut off, and one of them promoted", near, s.lag, s.replicas))
}

// replica is the field of INFO about replica i.
func replica(i int) string { return "slave" + strconv.Itoa(i) }

// lagOf is how long ago replica i was heard of; ok is false where it is not in step.
func lagOf(fields map[string]string, i int) (lag time.Duration, ok bool) {
	said := fields[replica(i)]
	_, seconds, _ := strings.Cut(said, ",lag=")
	n, err := strconv.Atoi(seconds)
	return time.Duration(n) * time.Second, err == nil && n >= 0 && strings.Contains(said, ",state=online,")
}

// verdict says why a master that others may replace must not vote, and sets Info.Late; f may be nil.
func (f *failover) verdict(s *stopping, i *Info, fields map[string]string) error {
	if f == nil {
		return nil
	}
	rule, ok := s.rule, true
	if f.ruleFunc != nil {
		rule, ok = f.ruleFunc()
	}
	i.Late = longestLag + slack // what the one before it had for min-replicas-max-lag is not known
	switch {
	case f.twoHold: // others may go by the settings: this program ends no quarantine too early for them
		return nil
	case !ok:
		return fault.Refused("nobody has said so far when a replica is promoted in its place")
	}
	if what, do := s.danger(rule, i); what != "" {
		return fault.Refused(fmt.Sprintf("%s: cut off from them it goes on giving locks, while the promoted one gives them "+
			"to others; %s; or allow two holders (allow=two-holders in its URL)", what, do))
	}
	return s.alone(fields)
}

// questions are asked before each INFO: it is judged by their answers. tag is that of a bucket.
func (s *stopping) questions(tag string) []wire.Question {
	take := func(reply any) error {
		s.take(reply)
		return nil
	}
	list := []wire.Question{{Op: "config get", Command: []any{"CONFIG", "GET", stoppingSettings}, TakeFunc: take}}
	if tag != "" {
		list = append(list, s.slotQuestions(tag)...)
	}
	return list
}

// stale says that a master that others may replace has not been heard of lately: it, or this program, may have been
// frozen meanwhile, and a replica promoted.
func (m *master) stale(s *session) error {
	if m.cfg.failover == nil || m.cfg.failover.twoHold {
		return nil
	}
	since, most := m.cfg.clock.Since(*s.heard.Load()), m.cfg.heartbeat+m.cfg.timeout
	if since <= most {
		return nil
	}
	return fault.Down(fault.Timeout("it was last heard of %v ago, and a replica may be in its place by now; more than %v "+
		"is too long", since.Round(time.Millisecond), most))
}

// AllowTwoHolders takes a master behind Sentinel, or a cluster, that goes on without its replicas: while it is cut off
// together with some programs, a replica is promoted for the others, and a lock may be held twice. Without it such a
// master has no vote. In a URL it is allow=two-holders.
func AllowTwoHolders() Option { return option(true, func(c *config) { c.twoHolders = true }, "") }

// FailsOver reports whether others may replace master i by one of its replicas: it is behind Sentinel, or a cluster. It
// panics where there is no master i.
func (p *Pool) FailsOver(i int) bool { return p.master(i).cfg.failover != nil }

// follow ends a session with another server than the one that is the master now. It looks at where the session is, not
// at whether the answer has changed: right after a promotion some still tell the old place, and a session may be made
// with that one after others have told the new.
func (m *master) follow() {
	m.cfg.failover.followFunc(m.ctx, func(addr string) {
		if s := m.gate.Load().sess; s != nil && s.addr != addr {
			s.pipe.Kill("failover", fault.Down(fmt.Errorf("the master is said to be %s now, no longer %s", addr, s.addr)))
		}
	})
}
