package redlockinfo

import (
	"fmt"
	"slices"
)

// A Severity ranks a [Finding].
type Severity uint8

// Severities, from the least to the most severe.
const (
	Notice  Severity = iota // worth knowing; nothing is in danger now
	Warning                 // degraded, or one more event would endanger locks
	Failure                 // the master has no vote, or locks on it are in danger
)

// severities are the names of the severities.
var severities = [...]string{Notice: "notice", Warning: "warning", Failure: "failure"}

// String returns the name of s.
func (s Severity) String() string { return severities[min(s, Failure)] }

// MarshalText implements [encoding.TextMarshaler], so that JSON has the name of s.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Severity) UnmarshalText(name []byte) error {
	i := slices.Index(severities[:], string(name))
	if i < 0 {
		return fmt.Errorf("redlockinfo: %q is no severity", name)
	}
	*s = Severity(i)
	return nil
}

// A Finding is one problem of a master, as Check of a Locker reports it. The texts are for people and contain no
// credentials.
type Finding struct {
	Master   string // as pool.Pool.Addr names it; or "deployment", a shard such as "shard 1 of 2", or "this host"
	Severity Severity
	// About is the topic, one word for programs: "connection", "identity", "role", "cluster", "eviction", "clock",
	// "version", "rights", "writes", "memory", "persistence", "replicas", "loading", "failover", "sentinels",
	// "databases", "scripts", "record", "data", "latency", "certificate", "quarantine", "list", "shards", "failing",
	// "max TTL", "quorum", "clients".
	About string
	// NoVote reports whether the master can grant no lock because of this problem.
	NoVote bool
	What   string // the problem
	Risk   string // what the problem endangers
	Fix    string // what to do, with commands in backquotes
}

// String returns the finding on one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s: %s. Risk: %s. Fix: %s.",
		f.Master, f.Severity, f.About, f.What, f.Risk, f.Fix)
}
