package transport

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/sentinel"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A failover describes a master that may be replaced by one of its replicas. If such a master is partitioned away
// together with some clients, it keeps serving them while a replica is promoted for the others, and both grant locks.
// So the master may vote only if it stops granting locks before a replica is promoted, that is, if it refuses writes
// unless all its replicas have been in contact recently.
type failover struct {
	twoHold bool // an operator has accepted that two clients may hold a lock; see AllowTwoHolders
	// finder queries the sentinels of the master, and rule is the promotion rule that they last reported, or nil if it
	// is not yet known. finder is nil in a cluster, where the node itself reports the rule, and replies with MOVED if
	// the slot has moved.
	finder *sentinel.Finder
	rule   atomic.Pointer[promotion]
}

// found stores the rule that sentinels have reported.
func (f *failover) found(p sentinel.Place) { f.rule.Store(&promotion{p.Replicas, p.DownAfter}) }

// A promotion describes when a replica is promoted.
type promotion struct {
	replicas int           // known replicas, connected or not
	after    time.Duration // how long the master must be silent
}

// stopping holds the settings that make a master refuse writes without its replicas.
type stopping struct {
	replicas int           // min-replicas-to-write
	lag      time.Duration // min-replicas-max-lag
	err      error         // why the settings cannot be read
	rule     promotion     // reported by a node of a cluster
	age      int           // heartbeats since these settings were read
}

// slack is how much later than min-replicas-max-lag a master may stop, because it measures the lag in whole seconds
// and checks it once a second.
const slack = 2 * time.Second

// longestLag is the largest allowed min-replicas-max-lag, and Redis's default. It is fixed because no client knows
// the settings that a replaced server had, or how long that server was silent before it was replaced: the nodes or
// sentinels may have had other settings then.
const longestLag = 10 * time.Second

// longestTimeout is the largest allowed [WithTimeout]. A master that is frozen while a replica is promoted executes
// the commands it was sent meanwhile as soon as it continues. The last of these commands is sent at most a heartbeat
// and a timeout after the master was last heard from (see stale). The promoted replica must still allow for locks of
// the old master at that time; it does so for longestLag + slack (see Info.Late).
const longestTimeout = longestLag + slack - DefaultHeartbeat

const stoppingSettings = "min-replicas-*"

// take reads the reply to CONFIG GET min-replicas-*.
func (s *stopping) take(settings map[string]string, err error) {
	s.replicas = int(number(settings["min-replicas-to-write"]))
	s.lag = time.Duration(number(settings["min-replicas-max-lag"])) * time.Second
	if err == nil && len(settings) < 2 {
		err = fmt.Errorf("the reply lacks min-replicas-to-write or min-replicas-max-lag")
	}
	s.err = err
}

// danger returns why a lock may have two holders while the master is partitioned away, and the step that prevents it.
// It returns "" if a lock cannot have two holders.
func (s *stopping) danger(rule promotion, i *Info, user string) (what, do string) {
	replicas := max(rule.replicas, i.Replicas, 1)
	longest := min(longestLag, (rule.after - slack).Truncate(time.Second))
	switch {
	case !i.stopsScripts():
		return fmt.Sprintf("it is Redis %.40s, whose scripts ignore min-replicas-to-write", i.Version),
			stepStops
	case s.err != nil && unknownCommand(redis.Error(s.err.Error())):
		return fmt.Sprintf("its min-replicas-to-write cannot be read (%.120v)", s.err), stepNoConfig
	case s.err != nil:
		return fmt.Sprintf("its min-replicas-to-write cannot be read (%v)", s.err), fmt.Sprintf(stepConfig, user)
	case s.replicas < replicas:
		return fmt.Sprintf("its min-replicas-to-write is %d, but it has %d replicas, any of which may be promoted",
			s.replicas, replicas), fmt.Sprintf(stepAll, "min-replicas-to-write", replicas)
	case longest < time.Second:
		return fmt.Sprintf("a replica is promoted after %v of silence, but a master may need 3s to notice that it is cut "+
			"off", rule.after), stepDownAfter
	case s.lag <= 0 || s.lag > longest:
		return fmt.Sprintf("its min-replicas-max-lag is %v, and a replica is promoted after %v of silence: it must be from "+
				"1s to %v", s.lag, rule.after, longest),
			fmt.Sprintf(stepAll, "min-replicas-max-lag", longest/time.Second)
	}
	return "", ""
}

// alone returns an error if the master may be partitioned away now, because such a master accepts writes until it
// notices.
func (s *stopping) alone(fields map[string]string) error {
	near := 0
	for i := range replicaCount(fields) {
		if lag, ok := lagOf(fields, i); ok && lag <= s.lag {
			near++
		}
	}
	if near >= s.replicas {
		return nil
	}
	return fault.Refused(fmt.Sprintf("%d replicas reported to it within %v, but it grants locks only with %d "+
		"(min-replicas-to-write): it may be partitioned away, and a replica may have been promoted", near, s.lag, s.replicas))
}

// replicaCount returns the number of replicas that a server reports. It is bounded, because loops count up to it.
func replicaCount(fields map[string]string) int {
	return int(min(number(fields["connected_slaves"]), 1000))
}

// replica returns the name of the INFO field about replica i.
func replica(i int) string { return "slave" + strconv.Itoa(i) }

// replicaFields returns what INFO reports about replica i, such as "ip", "port", "state" and "lag".
func replicaFields(fields map[string]string, i int) map[string]string {
	return pairs(strings.SplitSeq(fields[replica(i)], ","), "=")
}

// lagOf returns the time since replica i was last heard from. ok is false if the replica is not in sync.
func lagOf(fields map[string]string, i int) (lag time.Duration, ok bool) {
	about := replicaFields(fields, i)
	seconds, err := strconv.Atoi(about["lag"])
	return time.Duration(seconds) * time.Second, err == nil && seconds >= 0 && about["state"] == "online"
}

// verdict returns why a master that may be replaced must not vote, and sets Info.Late. f may be nil.
func (f *failover) verdict(s *stopping, i *Info, fields map[string]string) error {
	if f == nil {
		return nil
	}
	rule := &s.rule
	if f.finder != nil {
		rule = f.rule.Load()
	}
	i.Late = longestLag + slack // the min-replicas-max-lag of its predecessor is not known
	switch {
	case f.twoHold: // Late is set, too: other clients may rely on the settings and need the full quarantine
		return nil
	case rule == nil:
		return fault.Refused("it is not known yet when a replica would replace it")
	}
	if what, do := s.danger(*rule, i, "USER"); what != "" {
		return fault.Refused(fmt.Sprintf("%s: partitioned away it would grant locks, while the promoted one grants them "+
			"to others; %s; or allow two holders (allow=two-holders in its URL)", what, do))
	}
	return s.alone(fields)
}

// Every settingsEvery-th heartbeat reads the settings again. That is often enough, since only operators change them,
// and an idle client should cost its master little. Each new connection reads them, too.
const settingsEvery = 4

// questions returns the commands that are sent before each INFO. Their replies decide whether the master may vote.
// tag is the bucket's hash tag. settings says whether the settings are read, and nodes whether the bucket's slot is
// looked up.
func (s *stopping) questions(tag string, settings, nodes bool) (list []wire.Question) {
	if settings {
		list = append(list, configGet(stoppingSettings, s.take))
	}
	if tag != "" && nodes {
		list = append(list, s.slotQuestions(tag)...)
	}
	if tag != "" && settings {
		list = append(list, configGet("cluster-node-timeout", func(settings map[string]string, _ error) {
			s.rule.after = time.Duration(number(settings["cluster-node-timeout"])) * time.Millisecond
		}))
	}
	return list
}

// configGet returns a question that reads the settings that match pattern.
func configGet(pattern string, take func(settings map[string]string, err error)) wire.Question {
	return wire.Question{Op: "config get", Command: []string{"CONFIG", "GET", pattern}, TakeFunc: func(reply any) error {
		take(redis.StringMap(reply, nil))
		return nil
	}}
}

// stale returns an error if a replaceable master has not been heard from recently: the master or this process may have
// been frozen while a replica was promoted.
func (m *master) stale(s *session) error {
	if m.cfg.failover == nil || m.cfg.failover.twoHold {
		return nil
	}
	since, most := s.age(), m.cfg.heartbeat+m.cfg.timeout
	if since <= most {
		return nil
	}
	return fault.Down(fault.Timeout("its last message came %v ago, and a replica may have replaced it; more than %v "+
		"is too long", since.Round(time.Millisecond), most))
}

// AllowTwoHolders admits a master that may be replaced by a replica and keeps taking writes without its replicas.
func AllowTwoHolders() Option { return option(true, func(c *Config) { c.twoHolders = true }, "") }

// FailsOver reports whether master i may be replaced by one of its replicas, because it is behind Sentinel or a
// cluster. It panics if there is no master i.
func (t *Transport) FailsOver(i int) bool { return t.master(i).cfg.failover != nil }

// follow ends a session whose server is no longer the current master. It compares the address of the session with
// each answer, rather than waiting for the answer to change: right after a promotion some sentinels still report the
// old address, and a session with the old address may begin after other sentinels have reported the new one.
func (m *master) follow() {
	f := m.cfg.failover
	f.finder.Follow(m.ctx, func(p sentinel.Place) {
		f.found(p)
		if s := m.state.Load().sess; s != nil && s.addr != p.Addr {
			s.pipe.Kill("failover", fault.Down(fmt.Errorf("the sentinels name %s as the master, no longer %s", p.Addr, s.addr)))
		}
	})
}
