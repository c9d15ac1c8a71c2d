package pool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/sentinel"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// A Severity says how much a [Finding] matters.
type Severity uint8

// The severities.
const (
	Notice  Severity = iota // worth knowing; nothing is in danger now
	Warning                 // something works less well, or will be in danger when one more thing happens
	Failure                 // the master has no vote, or locks on it are in danger
)

// String returns the word for s.
func (s Severity) String() string {
	return [...]string{"notice", "warning", "failure"}[min(s, Failure)]
}

// A Finding is one thing that is not as it should be. The texts are for people and contain no credentials.
type Finding struct {
	Master   string // as [Pool.Addr] names it
	Severity Severity
	// About is what it is about, a word for programs: "connection", "identity", "role", "cluster", "eviction", "clock",
	// "version", "rights", "writes", "memory", "persistence", "replicas", "loading", "failover", "sentinels", "databases".
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
	Prefix    string // what the keys of locks begin with; the default is "redlock"
	Unguarded bool   // the restart guard is off, so masters must never lose data
	// Durable names the masters, as [Pool.Addr] does, that are relied on to remember every write: they are checked for
	// appendonly yes, appendfsync always and no-appendfsync-on-rewrite no.
	Durable []string
}

// Check asks each master, on a connection of its own, whether it is set up for locks, and returns what it found, sorted
// by master and then by severity, the gravest first; nothing is the good answer.
//
// It writes nothing: rights, and whether a master takes writes, are tried out with commands that change nothing. What
// it may not look at is a finding as well.
//
// It returns within the dial timeout ([WithDialTimeout]) of the slowest master, twice that behind sentinels, or when
// ctx ends: a master that has not answered by then is a finding. The error is for options that cannot be right, and
// matches [ErrInvalid].
func (p *Pool) Check(ctx context.Context, opts CheckOptions) ([]Finding, error) {
	opts.Prefix = cmp.Or(opts.Prefix, "redlock")
	if err := scripts.CheckPrefix(opts.Prefix); err != nil {
		return nil, fault.Invalid("%v", err)
	}
	masters := slices.DeleteFunc(slices.Clone(*p.list.Load()), func(m *master) bool { return m.ctx.Err() != nil })
	if len(masters) == 0 {
		return nil, nil
	}
	for _, name := range opts.Durable {
		if !slices.ContainsFunc(masters, func(m *master) bool { return m.Name == name }) {
			return nil, fault.Invalid("%q is named as durable, and no master has that name; they are named as %q",
				name, masters[0].Name)
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
		read[i].judge(&opts)
		compare(read, i)
		slices.SortStableFunc(read[i].findings, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
		list = append(list, read[i].findings...)
	}
	return list, nil
}

// facts are what was read of one master.
type facts struct {
	name, user string
	cfg        *config
	failed     *Error // what ended the questions; nil where all were answered

	info           Info
	text           map[string]string // INFO; nil where it was not answered
	write          redis.Error       // the answer to a write, where it was refused
	lacking        []scripts.Right   // the rights that the user lacks
	grants         []string          // the rules of ACL SETUSER that grant them, and take nothing away
	databases      []int             // others with an admission record of the prefix
	noEval, noLoad bool              // the scripts cannot be sent, cannot be loaded
	renamed        []string          // the commands that the server does not know
	durable        bool              // named as such
	wrong          []string          // settings of persistence, where somebody relies on it
	denied         string            // why they cannot be read

	stop    stopping          // where others may replace it
	answers []sentinel.Answer // of its sentinels

	findings []Finding
}

// examine asks the server who it is, and then all the rest, in one round trip.
func (m *master) examine(ctx context.Context, opts *CheckOptions) facts {
	f := facts{name: m.Name, user: cmp.Or(m.cfg.User, "default"), cfg: &m.cfg,
		durable: slices.Contains(opts.Durable, m.Name)}
	f.askSentinels(ctx, &m.cfg)
	c, op, err := m.cfg.Connect(ctx, func(c *wire.Conn) (string, error) {
		return c.Ask(f.questions(&m.cfg, opts))
	})
	if err != nil {
		f.failed = &Error{Addr: m.Name, Op: op, Err: err}
		return f
	}
	defer c.Close()
	f.otherDatabases(c, opts)
	return f
}

// otherDatabases looks for admission records of the prefix in the other databases that the user may read.
func (f *facts) otherDatabases(c *wire.Conn, opts *CheckOptions) {
	var list []wire.Question
	key, selected := scripts.Prefix(opts.Prefix).Admission(), false
	for field := range f.text {
		n, err := strconv.Atoi(strings.TrimPrefix(field, "db"))
		if err != nil || !strings.HasPrefix(field, "db") || n == f.cfg.Database {
			continue
		}
		list = append(list, wire.Question{Op: "select", Command: []any{"SELECT", n}, TakeFunc: func(reply any) error {
			selected = reply == "OK"
			return nil
		}}, wire.Question{Op: "getrange", Command: []any{"GETRANGE", key, "0", "0"}, TakeFunc: func(reply any) error {
			if text, ok := reply.([]byte); ok && len(text) > 0 && selected {
				f.databases = append(f.databases, n)
			}
			return nil
		}})
	}
	if _, err := c.Ask(list); err != nil {
		f.databases = nil // the rest was answered
	}
	slices.Sort(f.databases)
}

// durableSettings make a server remember every write that it has answered.
var durableSettings = [][2]string{{"appendonly", "yes"}, {"appendfsync", "always"}, {"no-appendfsync-on-rewrite", "no"}}

// questions are INFO, and commands that find out what it does not tell. Those about messages must come last.
func (f *facts) questions(cfg *config, opts *CheckOptions) (list []wire.Question) {
	ask := func(op string, take func(reply any, refused redis.Error), command string, args ...any) {
		list = append(list, wire.Question{Op: op, Command: append([]any{command}, args...), TakeFunc: func(reply any) error {
			refused, _ := reply.(redis.Error)
			take(reply, refused)
			return nil
		}})
	}
	asked := cfg.clock.Now()
	list = []wire.Question{{
		Op: "info", Command: []any{"INFO"}, TakeFunc: func(reply any) (err error) {
			f.info, f.text, err = cfg.readInfo(asked, reply)
			return err
		},
	}}
	if cfg.failover != nil {
		list = append(list, f.stop.questions(cfg.tag)...)
	}
	prefix := scripts.Prefix(opts.Prefix)
	ask("set", func(_ any, refused redis.Error) { f.write = refused },
		"SET", prefix.Lock("check of writes"), "0", "XX", "PX", "1000")
	for _, s := range durableSettings {
		if !f.durable && !opts.Unguarded {
			break
		}
		ask("config get", func(reply any, refused redis.Error) {
			pair, _ := redis.StringMap(reply, nil)
			switch value := pair[s[0]]; value {
			case "":
				f.denied = fmt.Sprintf("CONFIG GET %s is answered by %.120q", s[0], string(refused))
			case s[1]:
			default:
				f.wrong = append(f.wrong, fmt.Sprintf("%s is %s, not %s", s[0], value, s[1]))
			}
		}, "CONFIG", "GET", s[0])
	}
	for _, right := range scripts.Rights {
		command, args := right.Probe(prefix)
		ask("rights", func(_ any, refused redis.Error) {
			text := strings.ToLower(string(refused))
			switch {
			case unknownCommand(refused):
				f.renamed = append(f.renamed, right.Rule)
				right.Rule += " (renamed or unknown)"
			case fault.Code(refused) != "NOPERM":
				return
			case strings.Contains(text, "key"):
				f.grants = append(f.grants, "~"+opts.Prefix+":*")
			case strings.Contains(text, "channel"):
				f.grants = append(f.grants, "&"+opts.Prefix+":*")
			default:
				f.grants = append(f.grants, "+"+right.Rule)
			}
			f.noEval, f.noLoad = f.noEval || command == "EVAL", f.noLoad || command == "SCRIPT"
			f.lacking = append(f.lacking, right)
		}, command, args...)
	}
	return list
}
