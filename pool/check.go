package pool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// A Severity says how much a [Finding] matters.
type Severity uint8

// The severities.
const (
	// Notice: nothing is in danger now; worth knowing.
	Notice Severity = iota
	// Warning: something works less well, or will be in danger when one more thing happens.
	Warning
	// Failure: the master has no vote, or locks on it are in danger.
	Failure
)

// String returns the word for s.
func (s Severity) String() string {
	switch s {
	case Notice:
		return "notice"
	case Warning:
		return "warning"
	default:
		return "failure"
	}
}

// A Finding is one thing that [Pool.Check] has found to be not as it should be. The texts are for people and contain no
// credentials.
type Finding struct {
	// Master names the master as [Pool.Addr] does.
	Master   string
	Severity Severity
	// About is what it is about, a word for programs: "connection", "identity", "role", "cluster", "eviction", "clock",
	// "version", "rights", "writes", "memory", "persistence", "replicas", "loading".
	About string
	// What is so, what it Endangers, and what to Do about it: a sentence each.
	What, Endangers, Do string
}

// String returns the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s: %s. It endangers: %s. What to do: %s.",
		f.Master, f.Severity, f.About, f.What, f.Endangers, f.Do)
}

// CheckOptions say what [Pool.Check] compares with. The zero value is right for the defaults of package redlock.
type CheckOptions struct {
	// Prefix is what the keys of locks begin with; the default is "redlock".
	Prefix string
	// Skew is how far the clocks of the masters may be from their median. The default is 15 s, beyond which a master
	// has no vote.
	Skew time.Duration
	// Unguarded: the restart guard is off, so masters must never lose data.
	Unguarded bool
	// Durable names the masters, as [Pool.Addr] does, that are relied on to remember every write: they are checked for
	// appendonly yes, appendfsync always and no-appendfsync-on-rewrite no.
	Durable []string
}

// Check asks each master, on a connection of its own, whether it is set up for locks, and returns what it found, sorted
// by master and then by severity, the gravest first; nothing is the good answer. It works for masters that are refused
// or down, too, and needs nothing to be up.
//
// It writes nothing. A master that takes no writes is found by a command that writes only where a key is there (SET
// with XX), and rights are tried out with commands that change nothing. What it may not look at is a finding as well.
//
// It returns within two dial timeouts ([WithDialTimeout]) of the slowest master, or when ctx ends: a master that has
// not answered by then is a finding. The error is for options that cannot be right, and matches [ErrInvalid].
func (p *Pool) Check(ctx context.Context, opts CheckOptions) ([]Finding, error) {
	opts.Prefix = cmp.Or(opts.Prefix, "redlock")
	opts.Skew = cmp.Or(opts.Skew, 15*time.Second)
	if err := scripts.CheckPrefix(opts.Prefix); err != nil {
		return nil, fault.Invalid("%v", err)
	}
	if opts.Skew < 0 {
		return nil, fault.Invalid("the skew %v is negative", opts.Skew)
	}
	masters := slices.DeleteFunc(slices.Clone(*p.list.Load()), (*master).retired)
	if len(masters) == 0 {
		return nil, nil
	}
	for _, name := range opts.Durable {
		if !slices.ContainsFunc(masters, func(m *master) bool { return m.name == name }) {
			return nil, fault.Invalid("%q is named as durable, and no master has that name; they are named as %q",
				name, masters[0].name)
		}
	}
	read := make([]facts, len(masters))
	var wg sync.WaitGroup
	for i, m := range masters {
		wg.Go(func() { read[i] = m.examine(ctx, &opts) })
	}
	wg.Wait()
	var list []Finding
	for i := range read {
		findings := append(read[i].judge(&opts), compare(read, i, opts.Skew)...)
		slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
		list = append(list, findings...)
	}
	return list, nil
}

// facts are what was read of one master.
type facts struct {
	name, user    string
	allowEviction bool
	failed        *Error // what ended the questions; nil where all were answered

	asked bool // info and text are there
	info  Info
	text  map[string]string // INFO

	write    redis.Error       // the answer to a write, where it was refused
	lacking  []scripts.Right   // the rights that the user lacks
	durable  bool              // named as such
	settings map[string]string // of persistence, where somebody relies on it
	denied   string            // why they cannot be read
}

// examine connects, asks the server who it is, and then all the rest.
func (m *master) examine(ctx context.Context, opts *CheckOptions) facts {
	f := facts{name: m.name, user: userName(m.cfg.user), allowEviction: m.cfg.allowEviction,
		durable: slices.Contains(opts.Durable, m.name)}
	c, op, err := m.target.Connect(ctx, func(c *wire.Conn) (string, error) {
		g, text, err := m.cfg.readInfo(c)
		if err == nil {
			f.info, f.text, f.asked = g.Info, infoFields(text), true
		}
		return "info", err
	})
	if err == nil {
		defer c.Close()
		op, err = m.target.Within(ctx, c, func(c *wire.Conn) (string, error) { return f.ask(c, opts) })
	}
	if err != nil {
		f.failed = &Error{Addr: m.name, Op: op, Err: err}
	}
	return f
}

func infoFields(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}

// ask finds out by commands what INFO does not tell. Messages come last: behind them the connection takes no others.
func (f *facts) ask(c *wire.Conn, opts *CheckOptions) (op string, err error) {
	prefix := scripts.Prefix(opts.Prefix)
	if f.info.Role == "master" && !f.info.Loading {
		value, err := c.Ask("SET", prefix.Lock("check of writes"), "0", "XX", "PX", "1000")
		if err != nil {
			return "set", err
		}
		f.write, _ = value.(redis.Error)
	}
	if f.durable || opts.Unguarded {
		if err := f.askPersistence(c); err != nil {
			return "config get", err
		}
	}
	for _, right := range scripts.Rights {
		command, args := right.Probe(prefix)
		value, err := c.Ask(command, args...)
		if err != nil {
			return "rights", err
		}
		refusal, _ := value.(redis.Error)
		missing := strings.HasPrefix(strings.ToLower(string(refusal)), "err unknown command")
		if missing {
			right.Rule += " (renamed or unknown)"
		}
		if missing || fault.Code(refusal) == "NOPERM" {
			f.lacking = append(f.lacking, right)
		}
	}
	return "", nil
}

// durableSettings make a server remember every write that it has answered.
var durableSettings = [][2]string{{"appendonly", "yes"}, {"appendfsync", "always"}, {"no-appendfsync-on-rewrite", "no"}}

func (f *facts) askPersistence(c *wire.Conn) error {
	settings := make(map[string]string)
	for _, s := range durableSettings {
		value, err := c.Ask("CONFIG", "GET", s[0])
		if err != nil {
			return err
		}
		pair, _ := redis.StringMap(value, nil)
		if pair[s[0]] == "" {
			refusal, _ := value.(redis.Error)
			f.denied = fmt.Sprintf("CONFIG GET %s is answered by %.120q", s[0], string(refusal))
			return nil
		}
		settings[s[0]] = pair[s[0]]
	}
	f.settings = settings
	return nil
}
