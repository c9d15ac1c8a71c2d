package diagnose

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/sentinel"
	"github.com/redlock-go/redlock/internal/transport/wire"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Options are the settings of a client that [Masters] needs to know.
type Options struct {
	Prefix    string // key prefix of the locks
	Unguarded bool   // whether the restart guard is off; masters must then never lose data
	Admitted  bool   // whether a master votes, and so has a record with this list of masters
	// Durable names the masters, as [transport.Transport.Addr] does, that must persist every write before they reply:
	// they are checked for appendonly yes, appendfsync always and no-appendfsync-on-rewrite no.
	Durable []string
}

// An inquiry is what is asked of each master.
type inquiry struct {
	Options
	key     string        // a key with the prefix that no lock uses
	record  string        // the key of the admission record
	scripts []*frame.Call // of the scripts that clients run, with a key that no lock uses; they change nothing
	rights  []right       // on the keys and channels of the prefix; those for subscriptions come last
	masters []string      // the addresses of the masters
	// copies is the number of masters that are replicas of a server, by its address.
	copies map[string]int
	used   []int // the databases in which masters of this client have admission records
}

// A right is a command that the user of a client needs on a master.
type right struct {
	rule    string   // the word after the + in ACL SETUSER
	on      string   // "keys" or "channels" of the prefix, or "" for a command without either
	lacking string   // what does not work without the right; "" if no lock can be acquired or kept
	probe   []string // a command that needs the right and changes nothing
}

func newInquiry(opts Options) *inquiry {
	prefix := scripts.Prefix(opts.Prefix)
	q := &inquiry{
		Options: opts, key: prefix.Unused(), record: prefix.Admission(), scripts: scripts.Probes(prefix),
	}
	for _, r := range scripts.Rights {
		q.rights = append(q.rights, right{rule: r.Rule, on: r.On(), lacking: r.Lacking, probe: r.Probe(prefix)})
	}
	return q
}

// Masters inspects each master, on a separate connection, for problems that affect locks. It returns the findings
// sorted by master and then by severity, the most severe first. An empty list means that no problem was found.
//
// Masters writes nothing: it tests rights, and whether a master takes writes, with commands that change nothing. Data
// that the user has no right to read is reported as a finding.
//
// Masters returns within the dial timeout of the slowest master, twice that behind sentinels or with TLS, or when ctx
// ends. A master that has not answered by then is reported as a finding. The error reports invalid options and matches
// [fault.ErrInvalid].
func Masters(ctx context.Context, t *transport.Transport, opts Options) ([]redlockinfo.Finding, error) {
	masters := t.Subjects()
	if len(masters) == 0 {
		return nil, nil
	}
	for _, name := range opts.Durable {
		if !slices.ContainsFunc(masters, func(m transport.Subject) bool { return m.Name == name }) {
			return nil, fault.Invalid("%q is not the name of a master (WithDurableMasters; have %q)",
				name, masters[0].Name)
		}
	}
	q, read := newInquiry(opts), make([]facts, len(masters))
	for _, m := range masters {
		q.masters = append(q.masters, m.Config.Addr)
	}
	var wg sync.WaitGroup
	for i, m := range masters {
		wg.Go(func() { read[i] = q.examine(ctx, m) })
	}
	wg.Wait()
	list := host(read, time.Now(), func(f *facts) time.Duration { return f.cfg.Clock.Now().Sub(f.info.Read) })
	q.copies = map[string]int{}
	for i := range read {
		if read[i].text != nil && read[i].expires != absent {
			q.used = append(q.used, read[i].cfg.Database)
		}
		if read[i].info.Role == "slave" && read[i].text["master_host"] != "" {
			q.copies[net.JoinHostPort(read[i].text["master_host"], read[i].text["master_port"])]++
		}
	}
	for i := range read {
		read[i].judge(q)
		compare(read, i)
		slices.SortStableFunc(read[i].findings, func(a, b redlockinfo.Finding) int {
			return cmp.Compare(b.Severity, a.Severity)
		})
		list = append(list, read[i].findings...)
	}
	return list, nil
}

// facts holds the data read from one master.
type facts struct {
	name, user string
	cfg        *transport.Config
	mismatched bool             // whether the port of the server is one for TLS although the URL is not, or the reverse
	failed     *transport.Error // why reading stopped early; nil if every question was answered

	info      transport.Info
	text      map[string]string // INFO; nil if it was not answered
	write     redis.Error       // the error reply to a write, if it was refused
	load      redis.Error       // the error reply to SCRIPT LOAD, if it was refused for another reason than rights
	servers   []string          // addresses of different servers to which the name of the master leads; nil for an address
	databases []int             // other databases with an admission record of the prefix
	expires   int64             // ms until the admission record expires; -1 if it does not, and absent if there is none
	replaced  []string          // commands that may have replaced the data of the running server
	permissions
	storage

	certificates []*x509.Certificate // that the server has presented
	fastest      time.Duration       // the shortest of a few exchanges

	stop    transport.Stopping // set if the master may be replaced by a replica
	service string             // the name of the master for its sentinels
	answers []sentinel.Answer  // one per sentinel

	findings []redlockinfo.Finding
}

// permissions lists what the server refused to the user.
type permissions struct {
	lacking []denial // the rights that the user lacks
	odd     []denial // refusals for another reason
	// reached says for "keys" and "channels" whether the server has checked the right to them. If the user may run none of
	// the commands, it has not.
	reached map[string]bool
	noEval  bool     // whether the user may not run EVAL
	noLoad  bool     // whether the server refused SCRIPT LOAD
	renamed []string // commands that the server does not know
	refused []denial // refused scripts; the Rule is the name
}

// A denial is a command that the server refused.
type denial struct {
	right
	words redis.Error
	grant string // the rule of ACL SETUSER that grants the right and revokes none; "" if there is none
}

// storage describes whether a master retains its data.
type storage struct {
	durable  bool     // whether Options.Durable contains the master
	wrong    []string // settings that must be changed so that the master retains its data
	fixes    []string // the steps that change the settings in wrong
	noConfig bool     // whether the server has no CONFIG
	noRead   bool     // whether the user lacks the right to CONFIG GET
	denied   string   // why the settings cannot be read; "" if they can
}

// absent is the reply to PTTL if there is no key.
const absent = -2

// examine reads the facts of a master: first the identity of the server, then everything else in one round trip.
func (q *inquiry) examine(ctx context.Context, m transport.Subject) facts {
	f := facts{name: m.Name, user: m.Config.UserName(), cfg: m.Config, expires: -1}
	f.reached = make(map[string]bool)
	f.durable = slices.Contains(q.Durable, m.Name)
	if by, ok := m.Config.Authority().(*sentinel.Finder); ok {
		f.service, f.answers = by.Name, by.Survey(ctx)
	}
	target := m.Config.Target
	target.Database = 0 // the questions select it, so that a missing right to SELECT hides no other missing right
	c, op, err := target.Connect(ctx, func(c *wire.Conn) (string, error) {
		f.user = m.Config.UserName()
		return c.Ask(f.questions(q))
	})
	if err != nil {
		f.failed = &transport.Error{Addr: m.Name, User: f.user, Op: op, Err: err}
		switch fault.CauseOf(err) {
		case fault.Closed, fault.ClosedInTLS, fault.HangsInTLS:
			f.mismatched = m.Config.Mismatched(ctx)
		}
		return f
	}
	defer c.Close()
	f.certificates = c.Certificates()
	f.again(c, q)
	f.measure(c)
	f.otherDatabases(c, q)
	f.otherServers(ctx, &target)
	return f
}

// otherServers finds the other servers to which the name of the master leads, if it has several addresses.
func (f *facts) otherServers(ctx context.Context, target *wire.Target) {
	host, port, err := net.SplitHostPort(target.Addr)
	_, notName := netip.ParseAddr(host)
	if err != nil || notName == nil || target.Network != "tcp" || target.Dialer != nil || target.FindFunc != nil ||
		target.Foreign != nil {
		return
	}
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil || len(addrs) < 2 {
		return
	}
	var wg sync.WaitGroup
	found := make([]string, len(addrs))
	for i, addr := range addrs {
		one := *target // keeps Addr, for the certificate
		one.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(addr, port))
		}
		wg.Go(func() {
			_ = one.Query(ctx, wire.Optional("info", func(reply any, _ redis.Error) {
				text, _ := redis.String(reply, nil)
				found[i] = transport.InfoFields(text)["run_id"]
			}, "INFO", "server")) // an address that does not answer shows nothing
		})
	}
	wg.Wait()
	for i, id := range found {
		if first := slices.Index(found, id); id != "" && first == i {
			f.servers = append(f.servers, addrs[i])
		}
	}
}

// again asks what follows from the first replies: scripts that were not loaded are sent with their text, and the server
// says which rights are really missing, if the user may ask. A grant that would change nothing is dropped.
func (f *facts) again(c *wire.Conn, q *inquiry) {
	var list []wire.Question
	for _, call := range q.scripts {
		i := slices.IndexFunc(f.refused, func(d denial) bool { return d.rule == call.Script.Name })
		if i >= 0 && fault.Code(f.refused[i].words) == "NOSCRIPT" {
			f.refused = slices.Delete(f.refused, i, i+1)
			list = append(list, f.run(call, true))
		}
	}
	var missing, odd []denial
	for _, d := range f.lacking {
		list = append(list, wire.Optional("acl dryrun", func(reply any, _ redis.Error) {
			if reply == "OK" {
				odd = append(odd, d)
			} else {
				missing = append(missing, d)
			}
		}, append([]string{"ACL", "DRYRUN", f.user}, d.probe...)...))
	}
	if _, err := c.Ask(list); err == nil { // an error leaves the facts as they are known
		f.lacking, f.odd = missing, append(f.odd, odd...)
	}
}

// measure finds the shortest time of an exchange. It asks again only if the first one was slow: after pauses, since a
// host that is busy for a moment makes several exchanges slow.
func (f *facts) measure(c *wire.Conn) {
	f.fastest = f.info.RTT
	for range 4 {
		if f.fastest <= f.slow() {
			return
		}
		<-time.After(f.slow())
		began := time.Now()
		_, err := c.Ask([]wire.Question{wire.Optional("info", func(any, redis.Error) {}, "INFO", "server")})
		if err != nil {
			return
		}
		f.fastest = min(f.fastest, time.Since(began))
	}
}

// slow returns the time above which an exchange is slow: each attempt of a call is one, and the timeout ends it.
func (f *facts) slow() time.Duration { return f.cfg.Timeout / 10 }

// noRecord is the stamp of calls that change nothing: no admission record begins with it.
const noRecord = "-"

// run returns the question that runs a script, with its text if it may not have been loaded.
func (f *facts) run(call *frame.Call, asText bool) wire.Question {
	words, _ := frame.Next(call.Append(nil, noRecord, asText))
	return wire.Optional(call.Script.Name, func(_ any, refused redis.Error) {
		if refused != "" {
			f.refused = append(f.refused, denial{right: right{rule: call.Script.Name}, words: refused})
		}
	}, words...)
}

// otherDatabases looks for admission records of the prefix in the other databases that the user may read.
func (f *facts) otherDatabases(c *wire.Conn, q *inquiry) {
	var list []wire.Question
	selected := false
	for field := range f.text {
		n, err := strconv.Atoi(strings.TrimPrefix(field, "db"))
		if err != nil || !strings.HasPrefix(field, "db") || n == f.cfg.Database {
			continue
		}
		list = append(list, wire.Question{
			Op: "select", Command: []string{"SELECT", strconv.Itoa(n)}, TakeFunc: func(reply any) error {
				selected = reply == "OK"
				return nil
			},
		}, wire.Question{
			Op: "getrange", Command: []string{"GETRANGE", q.record, "0", "0"}, TakeFunc: func(reply any) error {
				if text, ok := reply.([]byte); ok && len(text) > 0 && selected {
					f.databases = append(f.databases, n)
				}
				return nil
			},
		})
	}
	if _, err := c.Ask(list); err != nil {
		f.databases = nil // not an error: the other facts are known
	}
	slices.Sort(f.databases)
}

// durableSettings make a server persist every write before it replies.
var durableSettings = [][2]string{{"appendonly", "yes"}, {"appendfsync", "always"}, {"no-appendfsync-on-rewrite", "no"}}

// replacing lists the commands that replace or delete data which a running server has, perhaps without its admission
// record.
var replacing = []string{"debug", "flushall", "flushdb", "restore", "swapdb"}

// questions returns INFO and the commands that read the remaining facts. The probes of rights for subscriptions must
// come last.
func (f *facts) questions(q *inquiry) (list []wire.Question) {
	cfg := f.cfg
	ask := func(op string, handleFunc func(reply any, refused redis.Error), command ...string) {
		list = append(list, wire.Optional(op, handleFunc, command...))
	}
	if cfg.Database != 0 {
		words := []string{"SELECT", strconv.Itoa(cfg.Database)}
		list = append(list, wire.Question{Op: "select", Command: words, TakeFunc: func(reply any) error {
			refused, _ := reply.(redis.Error)
			if fault.CauseOf(refused) != fault.NoRight {
				return wire.Refusal(reply)
			}
			f.probed(right{rule: "select", probe: words}, refused, q.Prefix)
			return nil
		}})
	}
	asked := cfg.Clock.Now()
	list = append(list, wire.Question{
		Op: "info", Command: []string{"INFO"}, TakeFunc: func(reply any) (err error) {
			refused, _ := reply.(redis.Error)
			if fault.CauseOf(refused) == fault.NoRight { // the probes of the rights report it, with all others
				return nil
			}
			f.info, f.text, err = cfg.ReadInfo(asked, reply)
			return err
		},
	})
	list = append(list, cfg.StoppingQuestions(&f.stop)...)
	ask("set", func(_ any, refused redis.Error) { f.write = refused },
		"SET", q.key, "0", "XX", "PX", "1000")
	ask("config get", func(_ any, refused redis.Error) { f.noConfig = fault.UnknownCommand(refused) },
		"CONFIG", "GET", "maxmemory-policy")
	if !q.Unguarded {
		ask("pttl", func(reply any, _ redis.Error) {
			if ms, ok := reply.(int64); ok {
				f.expires = ms
			}
		}, "PTTL", q.record)
		ask("info", func(reply any, _ redis.Error) {
			text, _ := redis.String(reply, nil)
			calls := transport.InfoFields(text)
			for _, command := range replacing {
				if calls["cmdstat_"+command] != "" {
					f.replaced = append(f.replaced, strings.ToUpper(command))
				}
			}
		}, "INFO", "commandstats")
	}
	for _, s := range durableSettings {
		if !f.durable && !q.Unguarded {
			break
		}
		ask("config get", func(reply any, refused redis.Error) {
			pair, _ := redis.StringMap(reply, nil)
			switch value := pair[s[0]]; value {
			case "":
				f.noRead = fault.CauseOf(refused) == fault.NoRight
				f.denied = fmt.Sprintf("unexpected reply to CONFIG GET %s: %.120q", s[0], string(refused))
			case s[1]:
			default:
				f.wrong = append(f.wrong, fmt.Sprintf("%s is %s, not %s", s[0], value, s[1]))
				f.fixes = append(f.fixes, f.set(s[0], s[1]))
			}
		}, "CONFIG", "GET", s[0])
	}
	for _, call := range q.scripts {
		list = append(list, f.run(call, false))
	}
	for _, need := range q.rights {
		ask("rights", func(_ any, refused redis.Error) { f.probed(need, refused, q.Prefix) }, need.probe...)
	}
	return list
}

// probed records the result of the command that tests a right. refused is the error reply to the command, whose code
// shows whether the user lacks the right, or "" if the command succeeded.
func (f *facts) probed(need right, refused redis.Error, prefix string) {
	d := denial{right: need, words: refused}
	if refused == "" || !deniedCommand.MatchString(string(refused)) {
		f.reached[need.on] = true
	}
	switch fault.CauseOf(refused) {
	case fault.NoSuchCommand:
		command, _, _ := strings.Cut(need.rule, "|") // a command is renamed with its subcommands
		f.renamed = append(f.renamed, command)
		d.rule += " (renamed or unknown)"
	case fault.NoRight:
		if d.grant = grantOf(need, refused, prefix); d.grant == "" {
			f.odd = append(f.odd, d)
			return
		}
	default:
		if refused != "" && need.probe[0] == "SCRIPT" {
			f.load, f.noLoad = refused, true
		}
		return
	}
	f.noEval, f.noLoad = f.noEval || need.probe[0] == "EVAL", f.noLoad || need.probe[0] == "SCRIPT"
	f.lacking = append(f.lacking, d)
}

// What servers deny. A reply with the code NOPERM says it in one of these sentences, of Redis 6.2 and of later servers.
var (
	deniedCommand = regexp.MustCompile(`^NOPERM .*has no permissions to run the '([^']+)' command( or its subcommand)?$`)
	deniedKey     = regexp.MustCompile(
		`^NOPERM (this user has no permissions to access one of the keys used as arguments|No permissions to access a key)$`)
	deniedChannel = regexp.MustCompile(`^NOPERM (this user has no permissions to access one of the channels used as ` +
		`arguments|No permissions to access a channel)$`)
)

// grantOf returns the rule that grants what the reply denies, or "" if the reply denies something else, such as a
// database.
func grantOf(need right, reply redis.Error, prefix string) string {
	text := string(reply)
	switch m := deniedCommand.FindStringSubmatch(text); {
	case m != nil && (m[1] == need.rule || strings.EqualFold(m[1], need.probe[0])):
		return "+" + need.rule
	case need.on == "keys" && deniedKey.MatchString(text):
		return "~" + prefix + ":*"
	case need.on == "channels" && deniedChannel.MatchString(text):
		return "&" + prefix + ":*"
	}
	return ""
}
