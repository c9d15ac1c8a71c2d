package quorum

import (
	"slices"
	"strings"
	"time"
)

// A Config is one state of the deployment's configuration. A Config never changes: each round uses one Config from
// beginning to end.
type Config struct {
	Epoch int64
	Rule  Rule
	Order []int // the masters in the given order; a master of both sets is listed once
	Slots int   // larger than each master's number in the pool
	// Tracked is Rule, or the rule of the next configuration while its masters are being admitted.
	Tracked Rule
	// Masters and Next name the masters of the two sets, as admission records do; Next is "" if there is one set.
	// Upcoming names those next masters that are not in use yet, while they are being admitted. The masters in use are
	// left out, so that no client can act with the list of the next masters alone.
	Masters, Next, Upcoming string
	// Slowest is the pool's longest timeout of a request: after this time each request has been answered or has failed.
	Slowest time.Duration
}

// All returns every master of c, also those that are being admitted for the next configuration.
func (c *Config) All() Set { return c.Rule.All() | c.Tracked.All() }

// Same reports whether c and o have the same epoch and the same rule.
func (c *Config) Same(o *Config) bool { return c.Epoch == o.Epoch && c.Rule == o.Rule }

// LeastFinal returns the minimum of the field Final in the record of master i with which master i may vote in c. The
// result is 0 for a master that is only in the next set, because such a master votes only together with the old set.
func (c *Config) LeastFinal(i int) int64 {
	switch {
	case c.Epoch%2 == 0:
		return c.Epoch
	case c.Rule.Old.Has(i):
		return c.Epoch - 1
	}
	return 0
}

// Within reports whether c has a single set, which is also one of the sets of o.
func (c *Config) Within(o *Config) bool {
	return !c.Rule.Joint() && (c.Rule.Old == o.Rule.Old || c.Rule.Old == o.Rule.Next)
}

// Following returns a copy of c under which the masters of next are also admitted.
func (c *Config) Following(next *Config) *Config {
	f := *c
	f.Slots, f.Tracked, f.Slowest = next.Slots, next.Rule, max(c.Slowest, next.Slowest)
	//mutant:upcoming = next.Next
	f.Upcoming = without(next.Next, next.Masters)
	return &f
}

// Settled returns a copy of c under which no masters of a next configuration are admitted.
func (c *Config) Settled() *Config {
	f := *c
	f.Tracked, f.Upcoming = c.Rule, ""
	return &f
}

// without returns the names in list that are not in other.
func without(list, other string) string {
	others := strings.Split(other, ",")
	return strings.Join(slices.DeleteFunc(strings.Split(list, ","), func(name string) bool {
		return slices.Contains(others, name)
	}), ",")
}

// Final returns the configuration in which the old masters of c vote alone, with the given epoch.
func (c *Config) Final(epoch int64) *Config {
	f := *c
	f.Epoch, f.Rule, f.Next, f.Upcoming, f.Order = epoch, Rule{Old: c.Rule.Old}, "", "", nil
	for _, i := range c.Order {
		if c.Rule.Old.Has(i) {
			f.Order = append(f.Order, i)
		}
	}
	f.Tracked = f.Rule
	return &f
}
