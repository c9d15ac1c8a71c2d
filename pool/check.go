package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
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
	return fmt.Sprintf("%s: %s: %s: %s. It endangers: %s. What to do: %s.", f.Master, f.Severity, f.About, f.What, f.Endangers, f.Do)
}

// CheckOptions say what [Pool.Check] compares with. The zero value is right for the defaults of package redlock.
type CheckOptions struct {
	// Prefix is what the keys of locks begin with; the default is "redlock".
	Prefix string
	// Skew is how far the clocks of the masters may be from their median. The default is 15 s, half of the default guard
	// time; half of the fleet's is right.
	Skew time.Duration
	// Unguarded: the restart guard is off, so masters must never forget.
	Unguarded bool
	// Durable names the masters, as [Pool.Addr] does, that are relied on to remember every write: they are checked for
	// appendonly yes, appendfsync always and no-appendfsync-on-rewrite no.
	Durable []string
}

// Check asks each master, on a connection of its own, whether it is set up for locks, and returns what it found, sorted
// by master and then by severity, the gravest first; nothing is the good answer. It works for masters that are refused
// or down, too, and needs nothing to be up.
//
// On each master it tries a write: a key below the prefix, of one second, so that a master that takes no writes is found.
// Rights are tried out with commands that change nothing. What it looks at and may not see is a finding as well.
//
// It returns within two dial timeouts ([WithDialTimeout]) of the slowest master, or when ctx ends: a master that has not
// answered by then is a finding. The error is for options that cannot be right, and matches [ErrInvalid].
func (p *Pool) Check(ctx context.Context, opts CheckOptions) ([]Finding, error) {
	if opts.Prefix == "" {
		opts.Prefix = "redlock"
	}
	if opts.Skew == 0 {
		opts.Skew = 15 * time.Second
	}
	if err := scripts.CheckPrefix(opts.Prefix); err != nil {
		return nil, invalid("%v", err)
	}
	if opts.Skew < 0 {
		return nil, invalid("the skew %v is negative", opts.Skew)
	}
	masters := p.active()
	if len(masters) == 0 {
		return nil, nil
	}
	for _, name := range opts.Durable {
		if !slices.ContainsFunc(masters, func(m *master) bool { return m.name == name }) {
			return nil, invalid("%q is named as durable, and no master has that name; they are named as %q", name, masters[0].name)
		}
	}
	patients := make([]*patient, len(masters))
	var wg sync.WaitGroup
	for i, m := range masters {
		patients[i] = &patient{m: m, opts: &opts}
		wg.Go(func() { patients[i].examine(ctx) })
	}
	wg.Wait()
	compare(patients, opts.Skew)
	var list []Finding
	for _, x := range patients {
		slices.SortStableFunc(x.findings, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
		list = append(list, x.findings...)
	}
	return list, nil
}

// A patient is one master under examination.
type patient struct {
	m        *master
	opts     *CheckOptions
	info     Info
	text     map[string]string // INFO
	asked    bool              // info is there
	findings []Finding
}

func (x *patient) find(s Severity, about, what, endangers, do string) {
	x.findings = append(x.findings, Finding{Master: x.m.name, Severity: s, About: about, What: what, Endangers: endangers, Do: do})
}

// examine connects, asks who it is, and then all the rest.
func (x *patient) examine(ctx context.Context) {
	dialing, cancel := context.WithTimeout(ctx, x.m.cfg.dialTimeout)
	defer cancel()
	l, err := x.m.dial(dialing)
	if err != nil {
		x.unreachable(x.m.connectError(dialing, "connect", err))
		return
	}
	defer l.close()
	if op, err := within(dialing, l, func() (string, error) { return x.admission(l) }); err != nil {
		x.unreachable(x.m.connectError(dialing, op, err))
		return
	}
	x.judgeInfo()
	asking, cancel := context.WithTimeout(ctx, x.m.cfg.dialTimeout)
	defer cancel()
	if op, err := within(asking, l, func() (string, error) { return x.ask(l) }); err != nil {
		x.unreachable(x.m.connectError(asking, op, err))
	}
}

// admission logs in and reads INFO.
func (x *patient) admission(l *link) (op string, err error) {
	if op, err := x.m.login(l); err != nil {
		return op, err
	}
	info, text, err := x.m.readInfoText(l)
	if err != nil {
		return "info", err
	}
	x.info, x.text, x.asked = info, infoFields(text), true
	return "", nil
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

// unreachable books that the master did not answer what was asked, or by an error that ends everything.
func (x *patient) unreachable(err *Error) {
	about, do := "connection", "start it, or mend the network, its address or its TLS; while a majority of the others votes, locks go on"
	switch cause := err.Err; {
	case errors.Is(cause, ErrRefused):
		about, do = "rights", "grant it: ACL SETUSER "+userName(x.m.cfg.user)+" +info"
	case err.Op == "auth" || err.Op == "select":
		about, do = "rights", "give the user and password that this master knows, and in the database that is asked for the right to it"
	case isCodeOf(cause, "NOAUTH"):
		about, do = "rights", "name the password in the URL, or by WithCredentials"
	case errors.Is(cause, ErrTimeout):
		do = "look whether it hangs (SLOWLOG, swapping, a long script), or give it more time by WithDialTimeout"
	}
	x.find(Failure, about, strings.TrimPrefix(err.Error(), "pool: "+x.m.name+": "), "it has no vote, and one failure less is survived", do)
}

func isCodeOf(err error, code string) bool {
	var reply redis.Error
	return errors.As(err, &reply) && replyCode(reply) == code
}

func userName(user string) string {
	if user == "" {
		return "default"
	}
	return user
}
