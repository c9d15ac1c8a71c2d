package diagnose

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/skew"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/sentinel"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// The rules of [Masters] are functions of the facts and do no I/O.

const (
	notice, warning, failure = redlockinfo.Notice, redlockinfo.Warning, redlockinfo.Failure

	sayNoVote = "it has no vote, so " + transport.FewerFailures
)

func (f *facts) find(s redlockinfo.Severity, about, what, risk, fix string) {
	f.findings = append(f.findings, redlockinfo.Finding{
		Master: f.name, Severity: s, About: about, What: what, Risk: risk, Fix: fix,
	})
}

// noVote adds a failure because of which the master can grant no lock.
func (f *facts) noVote(about, what, risk, fix string) {
	f.find(failure, about, what, risk, fix)
	f.findings[len(f.findings)-1].NoVote = true
}

// judge applies the rules that need no data of other masters.
func (f *facts) judge(q *inquiry) {
	if f.failed != nil {
		f.connection()
	}
	if f.text != nil {
		f.state(q)
		f.eviction()
		f.version()
		f.memory()
		f.clients()
		f.replicas(q)
	}
	if rule, ok := f.sentinels(); ok && f.text != nil {
		f.failsOver(rule, q)
		f.behind()
	}
	if f.fastest > f.slow() {
		f.find(warning, "latency", fmt.Sprintf("it answers after %v, longer than a tenth of the timeout, which is %v",
			f.fastest.Round(time.Millisecond), f.cfg.Timeout), "calls are slow, and may time out", stepSlow)
	}
	if len(f.servers) > 1 {
		f.find(warning, "identity", "its name leads to different servers: "+strings.Join(f.servers, ", "),
			"two clients may use different ones, and both get a lock", stepOneServer)
	}
	f.expiry(time.Now())
	f.writes()
	f.scripts()
	f.rights(q.Prefix)
	f.persistence(q)
	f.record(q)
	if len(f.databases) > 0 {
		f.otherRecords(q)
	}
}

// otherRecords reports that other databases have admission records. The database of this client may be wrong if it has
// no record, and those of its other masters have none either, or are among the others. Otherwise a record of this
// master may be lost, and the others may belong to another deployment.
func (f *facts) otherRecords(q *inquiry) {
	right := f.databases
	if len(q.used) > 0 {
		right = slices.DeleteFunc(slices.Clone(right), func(n int) bool { return !slices.Contains(q.used, n) })
	}
	if f.expires == absent && len(right) > 0 && !slices.Contains(q.used, f.cfg.Database) {
		f.find(warning, "databases", fmt.Sprintf("only other databases have an admission record with the prefix %q: %v",
			q.Prefix, f.databases), "if this client has the wrong database, it can get locks that other clients hold",
			fmt.Sprintf(stepOtherDatabase, right[0]))
		return
	}
	f.find(warning, "databases",
		fmt.Sprintf("other databases also have an admission record with the prefix %q: %v", q.Prefix, f.databases),
		"clients that use different databases can hold a lock of the same name simultaneously",
		fmt.Sprintf(stepDatabases, f.databases[0], q.record))
}

// connection reports a master that did not answer the questions.
func (f *facts) connection() {
	about, do := f.failed.Advice(f.user)
	switch {
	case f.mismatched && f.cfg.TLS == nil:
		do = stepUseTLS
	case f.mismatched:
		do = transport.StepPlain
	case fault.CauseOf(f.failed.Err) == fault.HangsInTLS, fault.CauseOf(f.failed.Err) == fault.Hangs:
		do = transport.StepHangs // perhaps after the first replies
	case do == "":
		do = unreached(f.failed)
	}
	risk := sayNoVote
	switch fault.CauseOf(f.failed.Err) {
	case fault.MaxClients, fault.NoLogin, fault.WrongLogin, fault.Protected, fault.Expired,
		fault.ClientCertificateExpired:
		risk += " by clients that connect now; those that are connected keep its vote"
	}
	f.noVote(about, strings.TrimPrefix(f.failed.WithoutAdvice(), "pool: "+f.name+": "), risk, do)
}

// clients warns before the limit of clients is reached, because others can then not connect.
func (f *facts) clients() {
	n, limit := transport.Number(f.text["connected_clients"]), transport.Number(f.text["maxclients"])
	if limit > 0 && n >= limit/10*9 {
		f.find(warning, "clients", fmt.Sprintf("it has %d of %d clients that it allows (maxclients)", n, limit),
			"it will soon refuse clients that connect", transport.StepClients)
	}
}

// unreached returns the step for a master that a client cannot reach, if the cause suggests none to the client.
func unreached(e *transport.Error) string {
	var reply redis.Error
	var dial *net.OpError
	switch {
	case fault.CauseOf(e.Err) == fault.NotListening:
		return stepStart
	case errors.As(e.Err, &dial) && dial.Net == "unix":
		return stepSocket
	case errors.As(e.Err, &reply):
		return transport.StepRefuses
	}
	return stepReach
}

// state reports why the server is unfit, and whether it has failed to write a snapshot or its append-only file.
func (f *facts) state(q *inquiry) {
	for _, u := range f.info.Unfit(f.cfg) {
		switch u.About {
		case "role":
			if f.info.Role == "slave" {
				u.What, u.Fix = f.replica(q)
			}
		case "eviction":
			u.Fix = f.set("maxmemory-policy", "noeviction")
		}
		f.noVote(u.About, u.What, u.Risk, u.Fix)
	}
	if f.text["rdb_last_bgsave_status"] == "err" && fault.Code(f.write) != "MISCONF" {
		f.find(warning, "writes", "its last snapshot failed (rdb_last_bgsave_status:err)",
			"with stop-writes-on-bgsave-error yes, the default, it rejects writes, and "+sayNoVote, stepSnapshot)
	}
	if f.text["aof_last_write_status"] == "err" {
		f.noVote("persistence", "it cannot write its append-only file (aof_last_write_status:err)",
			"it rejects writes, and "+sayNoVote, stepFile)
	}
}

// replica describes a server that is a replica, and returns the step that makes the master vote again.
func (f *facts) replica(q *inquiry) (what, do string) {
	what = "it is a replica"
	host, port := f.text["master_host"], f.text["master_port"]
	if host != "" && port != "" {
		what += " of " + net.JoinHostPort(host, port)
	}
	switch {
	case f.cfg.InCluster():
		return what, transport.FindMaster
	case f.cfg.FailsOver() && (host == "" || port == ""):
		return what, stepDisagree
	case f.cfg.FailsOver(): // REPLICAOF NO ONE would make a second master, if its master is one
		var addrs []string
		for _, a := range f.answers {
			addrs = append(addrs, a.Addr)
		}
		name, all := f.service, strings.Join(addrs, ", ")
		best, _ := sentinel.Latest(f.answers)
		monitor := fmt.Sprintf("%s %s %s %d", name, host, port, max(best.Quorum, len(addrs)/2+1))
		return what, fmt.Sprintf(stepMonitor, name, all, monitor, all)
	case q.Admitted, slices.Contains(q.masters, net.JoinHostPort(host, port)), q.copies[net.JoinHostPort(host, port)] > 1:
		return what, stepPromote // the list names its master already, or would name it more than once
	}
	return what, stepMaster
}

// set returns the step that changes a setting of the server.
func (f *facts) set(name, value string) string {
	if f.noConfig {
		return fmt.Sprintf(stepParameter, name, value)
	}
	return fmt.Sprintf(stepSet, name, value)
}

// eviction reports an eviction policy that endangers locks although the master may vote.
func (f *facts) eviction() {
	policy, limit := f.info.Policy, f.info.MaxMemory
	switch {
	case policy == "noeviction" || policy == "":
	case limit == 0:
		f.find(notice, "eviction", fmt.Sprintf("its maxmemory-policy is %q, but maxmemory is not set now", policy),
			"once maxmemory is set, lock keys may be evicted, so the master is refused",
			f.set("maxmemory-policy", "noeviction"))
	case f.cfg.AllowEviction:
		f.find(warning, "eviction",
			fmt.Sprintf("its maxmemory-policy is %q with maxmemory %d, allowed by AllowEviction", policy, limit),
			"if a lock is evicted on one master of its majority, a second client can acquire it unnoticed",
			f.set("maxmemory-policy", "noeviction"))
	}
}

// record reports a TTL on the admission record, and commands after which the record may be older than the locks.
func (f *facts) record(q *inquiry) {
	if f.expires >= 0 {
		f.find(warning, "record", fmt.Sprintf("its admission record has a TTL, and %v left: another program has set it",
			(time.Duration(f.expires)*time.Millisecond).Round(time.Second)),
			"when the record expires, the master has no vote until a quarantine has ended",
			fmt.Sprintf(stepPersist, q.record))
	}
	if len(f.replaced) > 0 {
		f.find(warning, "data", "it has executed "+strings.Join(f.replaced, ", ")+" since it started",
			"if the admission record comes back, from a backup or another database, and locks do not, a second client may "+
				"get a held lock", stepReplaced)
	}
}

// version compares the version with the supported range: from the oldest supported one to the latest major version that
// the tests run on.
func (f *facts) version() {
	name, first, last := "Redis", [2]int{6, 2}, 8
	if f.info.Valkey {
		name, first, last = "Valkey", [2]int{7, 2}, 9
	}
	if f.info.Sentinel {
		return
	}
	if f.info.Product != "" {
		f.find(warning, "version", fmt.Sprintf("it is %.40s %.40s, not Redis or Valkey", f.info.Product, f.info.Version),
			"this library is not tested with it: scripts may behave differently, and restarts may be unnoticed", stepProduct)
		return
	}
	what := fmt.Sprintf("it is %s %.40s", name, f.info.Version)
	use := fmt.Sprintf(stepVersion, name, first[0], first[1])
	var major, minor int
	_, err := fmt.Sscanf(f.info.Version, "%d.%d", &major, &minor)
	switch {
	case err != nil:
		f.find(warning, "version", fmt.Sprintf("its version %.40q cannot be read", f.info.Version),
			"its scripts may behave differently", use)
	case major < first[0] || major == first[0] && minor < first[1]:
		f.find(failure, "version", what, "scripts and rights are not tested with it, and may behave differently", use)
	case major > last:
		f.find(notice, "version", what+", newer than the tested ones", "none known", stepNewer)
	}
}

// memory warns before the memory limit is reached, because acquires then fail.
func (f *facts) memory() {
	used, limit := transport.Number(f.text["used_memory"]), f.info.MaxMemory
	if limit > 0 && used >= limit/10*9 && fault.Code(f.write) != "OOM" {
		f.find(warning, "memory", fmt.Sprintf("it uses %d of %d bytes of maxmemory", used, limit),
			"it will soon be unable to grant locks", f.moreMemory())
	}
}

// soon is the time before the end of a certificate from which on Masters warns of it.
const soon = 14 * 24 * time.Hour

// expiry warns of certificates that expire soon: those that the server presents, and those of this client.
func (f *facts) expiry(now time.Time) {
	ends := func(list []*x509.Certificate) (first time.Time) {
		for _, c := range list {
			if first.IsZero() || c.NotAfter.Before(first) {
				first = c.NotAfter
			}
		}
		return first
	}
	const risk = "then no client can connect"
	if at := ends(f.certificates); !at.IsZero() && at.Sub(now) < soon {
		f.find(warning, "certificate",
			"its certificate, or that of its authority, expires on "+at.UTC().Format(time.DateTime+" MST"),
			risk, transport.StepExpired)
	}
	if at := ends(f.own()); len(f.certificates) > 0 && !at.IsZero() && at.Sub(now) < soon {
		f.find(warning, "certificate", "the certificate of this client expires on "+at.UTC().Format(time.DateTime+" MST"),
			"then this client cannot connect", transport.StepClientExpired)
	}
}

// own returns the certificates of this client that are configured as such.
func (f *facts) own() (list []*x509.Certificate) {
	conf := f.cfg.TLS
	if f.cfg.TLSFunc != nil {
		conf, _ = f.cfg.TLSFunc() // without an error: the connection has just used it
	}
	if conf == nil {
		return nil
	}
	for _, c := range conf.Certificates {
		if leaf, err := x509.ParseCertificate(c.Certificate[0]); err == nil {
			list = append(list, leaf)
		}
	}
	return list
}

// host compares the clock of this host with the median of the masters' clocks.
func host(read []facts, now time.Time, since func(f *facts) time.Duration) []redlockinfo.Finding {
	var offs []int64 // of this host's clock, in microseconds
	for i := range read {
		if f := &read[i]; f.text != nil && f.info.Time != 0 {
			offs = append(offs, now.UnixMicro()-f.info.Time-since(f).Microseconds())
		}
	}
	if len(offs) == 0 {
		return nil
	}
	slices.Sort(offs)
	off := time.Duration(offs[len(offs)/2]) * time.Microsecond
	if !skew.Risky(off) {
		return nil
	}
	return []redlockinfo.Finding{{
		Master: ThisHost, Severity: notice, About: "clock", What: skew.Text(off),
		Risk: "locks do not depend on it, but its logs are hard to compare, and certificates may seem invalid",
		Fix:  stepClock,
	}}
}

// moreMemory returns the step that doubles maxmemory, up to half the memory of the machine. If there is no maxmemory,
// to set one would only make the server refuse more.
func (f *facts) moreMemory() string {
	if f.info.MaxMemory == 0 {
		return transport.StepMessage
	}
	more := max(transport.Number(f.text["used_memory"]), f.info.MaxMemory) * 2
	if all := transport.Number(f.text["total_system_memory"]); all > 0 && more > all/2 {
		return fmt.Sprintf(stepMemory, f.info.MaxMemory)
	}
	return f.set("maxmemory", fmt.Sprintf("%dmb", more>>20+1))
}

func (f *facts) replicas(q *inquiry) {
	if f.info.Role != "master" || f.info.Replicas == 0 || f.cfg.FailsOver() {
		return
	}
	severity := warning
	if q.Unguarded {
		severity = failure
	}
	var list []string
	for i := range f.info.Replicas {
		about := transport.ReplicaFields(f.text, i)
		list = append(list, net.JoinHostPort(about["ip"], about["port"]))
	}
	f.find(severity, "replicas", "it has "+transport.Count(f.info.Replicas, "replica"),
		"a promoted replica lacks the last writes: a second client may get a held lock, unless the restart "+
			"guard is on; then the master does not vote until the max TTL has passed",
		fmt.Sprintf(stepReplicas, strings.Join(list, ", ")))
}

// writes reports why a write was refused: acquires are refused as well.
func (f *facts) writes() {
	code := fault.Code(f.write)
	if f.write == "" || code == "NOPERM" || f.info.Sentinel || f.info.Role != "master" ||
		f.info.Loading { // reported by other rules
		return
	}
	do := transport.StepMessage
	switch {
	case code == "OOM":
		do = f.moreMemory()
	case code == "MISCONF" && f.text["aof_last_write_status"] == "err":
		return // state reports it
	case code == "MISCONF":
		do = stepSnapshot
	case code == "NOREPLICAS" && f.cfg.FailsOver():
		do = transport.StepInStep
	case code == "NOREPLICAS":
		do = f.set("min-replicas-to-write", "0")
	}
	f.noVote("writes", fmt.Sprintf("it rejected a write: %.200s", string(f.write)), sayNoVote, do)
}

// scripts reports a server that refuses to load scripts. [session.questions] says how a client does without.
func (f *facts) scripts() {
	if f.load == "" || f.info.Loading { // reported by another rule
		return
	}
	do := transport.StepMessage
	if fault.Code(f.load) == "OOM" {
		do = f.moreMemory()
	}
	f.find(warning, "scripts", fmt.Sprintf("it refused SCRIPT LOAD: %.200s", string(f.load)),
		"each script is sent in full, until the server has cached it", do)
}

func (f *facts) rights(prefix string) {
	if f.info.Sentinel { // it has none of the commands
		return
	}
	var needed, useful []denial
	var costs []string
	for _, d := range f.lacking {
		if d.probe[0] == "EVAL" && !f.noLoad {
			d.lacking = "after SCRIPT FLUSH it cannot vote until the client reconnects"
		}
		if d.probe[0] == "SCRIPT" && f.noEval {
			d.lacking = ""
		}
		if d.lacking == "" {
			needed = append(needed, d)
			continue
		}
		useful = append(useful, d)
		if !slices.Contains(costs, d.lacking) {
			costs = append(costs, d.lacking)
		}
	}
	var dos []string
	if grant := f.grant(prefix); grant != "" {
		dos = append(dos, grant)
	}
	if len(f.renamed) > 0 {
		dos = append(dos, fmt.Sprintf(stepRenamed, strings.Join(f.renamed, ", ")))
	}
	do := strings.Join(dos, "; ")
	if len(needed) > 0 {
		f.noVote("rights", f.may(needed, prefix), sayNoVote, do)
	}
	if len(useful) > 0 {
		f.find(warning, "rights", f.may(useful, prefix), strings.Join(costs, "; "), do)
	}
	f.refusals()
}

// grant returns the step that grants all rights that the user lacks in one line, or "" if it lacks none.
func (f *facts) grant(prefix string) string {
	var grants []string
	for _, d := range f.lacking {
		if d.grant != "" {
			grants = append(grants, d.grant)
		}
		// Redis 6.2 gives users all channels by default, and then accepts no pattern. It says if a channel is missing.
		everyChannel := d.on == "channels" && strings.HasSuffix(string(d.words), " or its subcommand")
		if d.on != "" && !f.reached[d.on] && !everyChannel {
			grants = append(grants, map[string]string{"keys": "~", "channels": "&"}[d.on]+prefix+":*")
		}
	}
	if f.unread() {
		grants = append(grants, "+config|get")
	}
	if len(grants) == 0 {
		return ""
	}
	slices.Sort(grants)
	return fmt.Sprintf(transport.StepRights, f.user, strings.Join(slices.Compact(grants), " "))
}

// unread reports whether the user lacks the right to read settings that must be known.
func (f *facts) unread() bool {
	needed := f.cfg != nil && f.cfg.FailsOver() && fault.CauseOf(f.stop.Err()) == fault.NoRight
	return needed || f.noRead
}

// may lists the commands that the user may not run.
func (f *facts) may(list []denial, prefix string) string {
	var parts []string
	for _, on := range []string{"", "keys", "channels"} {
		var rules []string
		for _, d := range list {
			if d.on == on {
				rules = append(rules, d.rule)
			}
		}
		switch {
		case len(rules) == 0:
		case on == "":
			parts = append(parts, strings.Join(rules, ", "))
		default:
			parts = append(parts, fmt.Sprintf("on %s %s:*: %s", on, prefix, strings.Join(rules, ", ")))
		}
	}
	return fmt.Sprintf("the user %q may not run: %s", f.user, strings.Join(parts, "; "))
}

// refusals reports what the server refuses for a reason that no right changes. A script that fails because a right is
// missing is not reported: all missing rights are.
func (f *facts) refusals() {
	list := f.odd
	fits := f.info.Cluster == f.cfg.InCluster() // if not, state reports it
	if len(f.lacking) == 0 && f.write == "" && !f.info.Loading && fits {
		for _, d := range f.refused {
			switch cause := fault.CauseOf(d.words); {
			case fault.Transient(d.words), cause != fault.Unknown && cause != fault.NoSuchCommand,
				slices.Contains([]string{"MOVED", "ASK", "WRONGTYPE", "BADFENCE"}, fault.Code(d.words)):
			default:
				list = append(list, d)
			}
		}
	}
	names := map[string][]string{} // by text
	var texts []string
	for _, d := range list {
		text, _, _ := strings.Cut(string(d.words), " script: ") // the rest is for the authors of the script
		if names[text] == nil {
			texts = append(texts, text)
		}
		if !slices.Contains(names[text], d.rule) { // locks and semaphores share a script
			names[text] = append(names[text], d.rule)
		}
	}
	for _, text := range texts {
		f.find(failure, "scripts", fmt.Sprintf("it refused %s: %.200s", strings.Join(names[text], ", "), text),
			"calls of clients fail there", transport.StepRefuses)
	}
}

// persistence reports settings with which a restart may lose acknowledged writes.
func (f *facts) persistence(q *inquiry) {
	if f.denied != "" {
		do := transport.StepMessage
		switch {
		case f.noConfig:
			do = stepDecide
		case f.noRead:
			do = f.grant(q.Prefix)
		}
		f.find(warning, "persistence", "cannot check whether it remembers every write: "+f.denied,
			"if it does not, a second client may get a held lock after its restart", do)
		return
	}
	if len(f.wrong) == 0 {
		return
	}
	why, risk := "the restart guard is off", "a restart loses held locks, and a second client may acquire them"
	if f.durable {
		why = "it is declared durable"
		risk = "it is not treated as durable: after a restart it is in quarantine, and while its record calls it " +
			"durable it has no vote"
	}
	f.find(failure, "persistence", strings.Join(f.wrong, "; ")+"; and "+why, risk, strings.Join(f.fixes, "; "))
}

// compare checks master i against the others: whether it is the same server as one of them, and its clock.
func compare(read []facts, i int) {
	f := &read[i]
	if f.text == nil {
		return
	}
	k := slices.IndexFunc(read, func(other facts) bool { return other.info.RunID == f.info.RunID })
	if k < i && f.info.RunID != "" {
		f.noVote("identity", transport.SameServer(read[k].name, f.info.RunID), transport.TwoVotes, transport.StepDiffer)
	}
	var offsets []int64 // of the other clocks from this one, in microseconds
	for _, other := range read {
		if other.text != nil && other.info.Time != 0 {
			offsets = append(offsets, other.info.Time-f.info.Time-other.info.Read.Sub(f.info.Read).Microseconds())
		}
	}
	if f.info.Time == 0 { // the finding about its identity says so
		return
	}
	slices.Sort(offsets)
	f.clock(-offsets[len(offsets)/2])
}

// clock reports the clock if its offset from the median of all clocks is too large. off is that offset in
// microseconds.
func (f *facts) clock(off int64) {
	const most = int64(1<<63-1) / int64(time.Microsecond)
	d := time.Duration(max(-most, min(off, most))) * time.Microsecond
	what, away := skew.Text(d), max(0, max(d, -d)-f.info.RTT/2)
	switch {
	case skew.Excludes(away):
		f.noVote("clock", fmt.Sprintf("%s, more than %v", what, skew.Window),
			"it refuses the ballots of all clients, and after a restart it is never admitted; "+transport.FewerFailures,
			stepSetTime)
	case skew.Risky(away):
		f.find(warning, "clock", fmt.Sprintf("%s; clocks synchronized by NTP agree within %v", what, skew.Agree),
			fmt.Sprintf("at %v it loses its vote", skew.Window), stepClock)
	}
}
