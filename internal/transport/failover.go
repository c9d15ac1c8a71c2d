package transport

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/heartbeat"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/wire"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A failover describes a master that may be replaced by one of its replicas. A partition may isolate such a master
// together with some clients: the master keeps serving these clients while a replica is promoted for the other clients,
// and both servers grant locks. So the master may vote only if it stops granting locks before a replica is promoted. To
// stop in time, it must refuse writes unless all its replicas have been in contact recently.
//
// A plain master has none: the methods that sessions call also work on nil.
type failover struct {
	twoHold bool // whether the option TwoHolders is set
	Authority
}

// An Authority finds a master that a replica may replace, and knows when a replica does so: the sentinels, or the nodes
// of a cluster. Packages sentinel and cluster have one each, and schemes.go chooses between them. Nothing else in this
// package knows which of the two a master has. Package diagnose, which explains both to people, tells them apart.
type Authority interface {
	// Find returns the address of the master.
	Find(ctx context.Context) (addr string, err error)
	// Follow calls foundFunc with the address of the master, whenever it may have changed, until ctx ends. It returns at
	// once if the master itself says that it has been replaced.
	Follow(ctx context.Context, foundFunc func(addr string))
	// InCluster reports whether the master must be a cluster node.
	InCluster() bool

	// Reported returns the rule by which a replica is promoted, if Find has learned it; see Promotion.
	Reported() (replicas int, after time.Duration, ok bool)
	// RuleQuestions and PlaceQuestions read the rule from the master, if Find does not. PlaceQuestions also verify what
	// changes with the digest.
	RuleQuestions(afterFunc func(time.Duration)) []wire.Question
	PlaceQuestions(replicasFunc func(int)) []wire.Question

	// Heartbeat returns the heartbeat of a session for which digest was the last digest.
	Heartbeat(digest string) *frame.Call
	// Digest returns what changes when the identity or the place of the server does, from the reply to a heartbeat. It is
	// "" if that is not known.
	Digest(fields map[string]string) string
}

// noDigest is the digest of a plain master, whose place never changes.
const noDigest = "-"

func (f *failover) inCluster() bool { return f != nil && f.InCluster() }

func (f *failover) call(digest string) *frame.Call {
	if f == nil {
		return heartbeat.Call(false)
	}
	return f.Heartbeat(digest)
}

func (f *failover) digestOf(fields map[string]string) string {
	if f == nil {
		return noDigest
	}
	return f.Digest(fields)
}

// follow ends the session when the authority reports another address for the master. It compares the address of the
// session with every report, even an unchanged one: right after a promotion, some sentinels still report the old
// address, and a session with the old address may begin after other sentinels have reported the new address.
func (f *failover) follow(m *master) {
	f.Follow(m.ctx, func(addr string) {
		if s := m.state.Load().sess; s != nil && s.addr != addr {
			s.pipe.Kill("failover", fault.Down(fmt.Errorf("the master is now at %s, no longer at %s", addr, s.addr)))
		}
	})
}

// rule returns when a replica is promoted, or nil if that is not known yet.
func (f *failover) rule(stop *Stopping) *Promotion {
	if replicas, after, ok := f.Reported(); ok {
		return &Promotion{replicas, after}
	}
	if stop.ruleRead {
		return &stop.rule
	}
	return nil
}

// A Promotion describes when a replica is promoted.
type Promotion struct {
	Replicas int           // number of known replicas, connected or not
	After    time.Duration // how long the master must be silent
}

// Stopping holds the settings that make a master refuse writes without its replicas.
type Stopping struct {
	replicas int           // min-replicas-to-write
	lag      time.Duration // min-replicas-max-lag
	err      error         // why the settings cannot be read
	rule     Promotion     // as the master reports it
	ruleRead bool          // whether the master reports it
	age      int           // number of heartbeats since the settings were read
}

// slack is the longest time for which a master accepts writes after min-replicas-max-lag has passed: it measures the
// lag in whole seconds and checks the lag once a second.
const slack = 2 * time.Second

// longestLag is the largest allowed min-replicas-max-lag, and the default of Redis. It is a constant, because a client
// of the promoted replica cannot know the settings of the replaced server, nor how long that server was silent before
// the promotion: the sentinels or nodes may have had other settings at that time.
const longestLag = 10 * time.Second

// longestTimeout is the largest timeout allowed in a [Config]. A master that is frozen while a replica is promoted
// resumes with the commands that it received in the meantime. A client sends the last of these commands at most a
// heartbeat and a timeout after the last reply of the master (see stale). At that time, the promoted replica must still
// allow for locks of the old master, which it does for longestLag + slack (see Info.Late).
const longestTimeout = longestLag + slack - DefaultHeartbeat

// Err returns why the settings cannot be read, or nil.
func (stop *Stopping) Err() error { return stop.err }

// FailsOver reports whether one of its replicas may replace the master.
func (cfg *Config) FailsOver() bool { return cfg.failover != nil }

// InCluster reports whether the master is the node of a cluster that owns a slot.
func (cfg *Config) InCluster() bool { return cfg.failover.inCluster() }

// Authority returns the authority of the master, or nil if no replica may replace the master.
func (cfg *Config) Authority() Authority {
	if cfg.failover == nil {
		return nil
	}
	return cfg.failover.Authority
}

// StoppingQuestions returns the commands that read stop and the rule by which a replica is promoted.
func (cfg *Config) StoppingQuestions(stop *Stopping) []wire.Question {
	return cfg.failover.allQuestions(stop)
}

// Rule returns the rule that the master has reported.
func (stop *Stopping) Rule() Promotion { return stop.rule }

const stoppingSettings = "min-replicas-*"

// readSettings reads the reply to CONFIG GET min-replicas-*.
func (stop *Stopping) readSettings(settings map[string]string, err error) {
	stop.replicas = int(Number(settings["min-replicas-to-write"]))
	stop.lag = time.Duration(Number(settings["min-replicas-max-lag"])) * time.Second
	if err == nil && len(settings) < 2 {
		err = fmt.Errorf("the reply lacks min-replicas-to-write or min-replicas-max-lag")
	}
	stop.err = err
}

// Danger returns why a lock may have two holders while a partition isolates the master, and the step that prevents
// this. Both are "" if a lock cannot have two holders.
func (stop *Stopping) Danger(rule Promotion, info *Info, user string) (what, do string) {
	replicas := max(rule.Replicas, info.Replicas)
	longest := min(longestLag, (rule.After - slack).Truncate(time.Second))
	switch {
	case !info.stopsScripts():
		return fmt.Sprintf("it is %s %.40s, whose scripts ignore min-replicas-to-write", cmp.Or(info.Product, "Redis"),
				info.Version),
			stepStops
	case stop.err != nil && fault.UnknownCommand(redis.Error(stop.err.Error())):
		return fmt.Sprintf("its min-replicas-to-write cannot be read (%.120v)", stop.err), stepNoConfig
	case stop.err != nil:
		return fmt.Sprintf("its min-replicas-to-write cannot be read (%v)", stop.err), fmt.Sprintf(ConfigRight, user)
	case stop.replicas == 0 && replicas == 0:
		return "its min-replicas-to-write is 0, and it has no replica: one that is added may be promoted",
			fmt.Sprintf(stepAll, "min-replicas-to-write", 1)
	case stop.replicas < replicas:
		return fmt.Sprintf("its min-replicas-to-write is %d, but it has %s that may be promoted", stop.replicas,
			Count(replicas, "replica")), fmt.Sprintf(stepAll, "min-replicas-to-write", replicas)
	case longest < time.Second:
		return fmt.Sprintf("a replica is promoted after %v of silence, but a master may need 3s to notice that it is cut "+
			"off", rule.After), stepDownAfter
	case stop.lag <= 0 || stop.lag > longest:
		return fmt.Sprintf("its min-replicas-max-lag is %v, and a replica is promoted after %v of silence: it must be from "+
				"1s to %v", stop.lag, rule.After, longest),
			fmt.Sprintf(stepAll, "min-replicas-max-lag", longest/time.Second)
	}
	return "", ""
}

// alone returns an error if a partition may be isolating the master from its replicas now. An isolated master accepts
// writes until min-replicas-max-lag has passed.
func (stop *Stopping) alone(fields map[string]string) error {
	inSync := 0
	for i := range replicaCount(fields) {
		if lag, ok := LagOf(fields, i); ok && lag <= stop.lag {
			inSync++
		}
	}
	if inSync >= stop.replicas {
		return nil
	}
	return refuse(redlockinfo.Finding{
		Severity: redlockinfo.Failure, About: "writes", NoVote: true,
		What: fmt.Sprintf("%s reported to it within %v, but it grants locks only with %d (min-replicas-to-write)",
			Count(inSync, "replica"), stop.lag, stop.replicas),
		Risk: "a partition may have isolated it, and a replica may have been promoted", Fix: StepInStep,
	})
}

// replicaCount returns the number of replicas that a server reports. It is bounded, because loops count up to it.
func replicaCount(fields map[string]string) int {
	return int(min(Number(fields["connected_slaves"]), 1000))
}

// ReplicaField returns the name of the INFO field about replica i.
func ReplicaField(i int) string { return "slave" + strconv.Itoa(i) }

// ReplicaFields returns what INFO reports about replica i, such as "ip", "port", "state" and "lag".
func ReplicaFields(fields map[string]string, i int) map[string]string {
	return pairs(strings.SplitSeq(fields[ReplicaField(i)], ","), "=")
}

// LagOf returns the time since replica i was last heard from. ok is false if the replica is not in sync.
func LagOf(fields map[string]string, i int) (lag time.Duration, ok bool) {
	about := ReplicaFields(fields, i)
	seconds, err := strconv.Atoi(about["lag"])
	return time.Duration(seconds) * time.Second, err == nil && seconds >= 0 && about["state"] == "online"
}

// verdict returns why a master that a replica may replace must not vote, or nil, and sets info.Late. If f is nil, the
// master has no failover, and verdict returns nil.
func (f *failover) verdict(stop *Stopping, info *Info, fields map[string]string) error {
	if f == nil {
		return nil
	}
	rule := f.rule(stop)
	info.Late = longestLag + slack // the min-replicas-max-lag of the replaced server is not known
	switch {
	case f.twoHold: // info.Late stays set: other clients may rely on the settings and need the full quarantine
		return nil
	case rule == nil:
		return fault.Refused("it is not known yet when a replica would replace it")
	}
	if what, do := stop.Danger(*rule, info, "USER"); what != "" {
		return refuse(redlockinfo.Finding{
			Severity: redlockinfo.Failure, About: "failover", NoVote: true, What: what,
			Risk: "in a partition it would keep granting locks while the promoted replica grants them to other clients",
			Fix:  do + "; or allow two holders (allow=two-holders in its URL)",
		})
	}
	return stop.alone(fields)
}

// settingsEvery is the number of heartbeats after which the settings are read again. Only operators change the
// settings, and an idle client should cost its master little. Each new connection reads the settings first.
const settingsEvery = 4

// allQuestions returns the commands that are sent before the first INFO of a session to decide whether the master may
// vote.
func (f *failover) allQuestions(stop *Stopping) []wire.Question {
	if f == nil {
		return nil
	}
	return append(f.settingsQuestions(stop), f.placeQuestions(stop)...)
}

// dueQuestions returns those of allQuestions that are sent with the next heartbeat, except those about the place.
func (f *failover) dueQuestions(stop *Stopping) []wire.Question {
	if f == nil {
		return nil
	}
	if stop.age = (stop.age + 1) % settingsEvery; stop.age != 0 {
		return nil
	}
	return f.settingsQuestions(stop)
}

// placeQuestions returns the questions about the place.
func (f *failover) placeQuestions(stop *Stopping) []wire.Question {
	if f == nil {
		return nil
	}
	return f.PlaceQuestions(func(replicas int) { stop.rule.Replicas, stop.ruleRead = replicas, true })
}

func (f *failover) settingsQuestions(stop *Stopping) []wire.Question {
	return append([]wire.Question{wire.ConfigGet(stoppingSettings, stop.readSettings)},
		f.RuleQuestions(func(after time.Duration) { stop.rule.After, stop.ruleRead = after, true })...)
}

// stale returns an error if a master that a replica may replace has not answered a heartbeat recently: the master or
// this process may have been frozen while a replica was promoted.
func (m *master) stale(s *session) error {
	if m.cfg.failover == nil || m.cfg.failover.twoHold {
		return nil
	}
	since, most := s.age(), m.cfg.Heartbeat+m.cfg.Timeout
	if since <= most {
		return nil
	}
	return fault.Down(fault.Timeout("its last reply came %v ago, more than %v: a replica may have replaced it",
		since.Round(time.Millisecond), most))
}

// FailsOver reports whether master i may be replaced by one of its replicas, because it is behind Sentinel or a
// cluster. It panics if there is no master i.
func (t *Transport) FailsOver(i int) bool { return t.master(i).cfg.FailsOver() }

// Database returns the number of the database of master i, or "" if it is not known. It panics if there is no master i.
func (t *Transport) Database(i int) string {
	cfg := &t.master(i).cfg
	if cfg.Foreign != nil {
		return ""
	}
	return strconv.Itoa(cfg.Database)
}

// Count returns n and the noun, in the plural if n is not 1.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
