package pool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool/internal/fault"
)

// The rules of [Pool.Check]: functions of what was read, without I/O.

// A judgement collects what is found of one master.
type judgement struct {
	*facts
	findings []Finding
}

func (j *judgement) find(s Severity, about, what, endangers, do string) {
	j.findings = append(j.findings,
		Finding{Master: j.name, Severity: s, About: about, What: what, Endangers: endangers, Do: do})
}

// judge looks at one master alone.
func (f *facts) judge(opts *CheckOptions) []Finding {
	j := &judgement{facts: f}
	if f.failed != nil {
		j.connection()
	}
	if f.text != nil {
		j.state()
		j.eviction()
		j.version()
		j.memory()
		j.replicas(opts)
	}
	j.writes()
	j.rights(scripts.Prefix(opts.Prefix))
	j.persistence()
	return j.findings
}

// connection says what may be wrong where a master did not answer what it was asked.
func (j *judgement) connection() {
	about, do := "connection", "start it, or mend the network, its address or its TLS; while a majority of the others "+
		"votes, locks go on"
	switch cause, op := j.failed.Err, j.failed.Op; {
	case errors.Is(cause, ErrRefused):
		about, do = "rights", "grant it: ACL SETUSER "+j.user+" +info"
	case op == "auth" || op == "select":
		about, do = "rights", "give the user and password that this master knows, and in the database that is asked for "+
			"the right to it"
	case fault.IsCode(cause, "NOAUTH"):
		about, do = "rights", "name the password in the URL, or by WithCredentials"
	case errors.Is(cause, ErrTimeout):
		do = "look whether it hangs (SLOWLOG, swapping, a long script), or give it more time by WithDialTimeout"
	}
	j.find(Failure, about, strings.TrimPrefix(j.failed.Error(), "pool: "+j.name+": "), noVote, do)
}

// state looks at what the server is and does.
func (j *judgement) state() {
	for _, f := range j.info.unfit(j.allowEviction) {
		if f.Master = j.name; f.About == "role" {
			f.What += fmt.Sprintf(", but a replica of %s:%s", j.text["master_host"], j.text["master_port"])
		}
		j.findings = append(j.findings, f)
	}
	if j.text["rdb_last_bgsave_status"] == "err" {
		j.find(Warning, "writes", "its last snapshot has failed (rdb_last_bgsave_status:err)",
			"with stop-writes-on-bgsave-error yes, the default, it takes no writes, and "+noVote, mendSnapshots)
	}
	if j.text["aof_last_write_status"] == "err" {
		j.find(Failure, "persistence", "it cannot write its append-only file (aof_last_write_status:err)",
			"it takes no writes, and "+noVote, "look into its log; make room on its disk")
	}
}

const mendSnapshots = "look into its log; make room on its disk, or switch snapshots off: CONFIG SET save \"\""

// eviction warns of a policy for which the master is not refused.
func (j *judgement) eviction() {
	policy, limit := j.info.Policy, j.info.MaxMemory
	switch {
	case policy == "noeviction" || policy == "":
	case limit == 0:
		j.find(Notice, "eviction", fmt.Sprintf("its maxmemory-policy is %q, without a limit now", policy),
			"once somebody sets maxmemory, keys of locks may be dropped, and the master is refused", noEviction)
	case j.allowEviction:
		j.find(Warning, "eviction",
			fmt.Sprintf("its maxmemory-policy is %q with maxmemory %d, allowed by AllowEviction", policy, limit),
			"a lock that is dropped on one master of a majority is a second holder, and nothing announces it", noEviction)
	}
}

// The versions that are supported: the first, and the last major one that the tests run on.
var supported = map[bool]struct {
	name  string
	first [2]int
	last  int
}{
	false: {"Redis", [2]int{6, 2}, 8},
	true:  {"Valkey", [2]int{7, 2}, 9},
}

func (j *judgement) version() {
	s := supported[j.info.Valkey]
	what := fmt.Sprintf("it is %s %.40s", s.name, j.info.Version)
	first := fmt.Sprintf("use %s %d.%d", s.name, s.first[0], s.first[1])
	major, minor, ok := parseVersion(j.info.Version)
	switch {
	case !ok:
		j.find(Warning, "version", fmt.Sprintf("its version %.40q cannot be read", j.info.Version),
			"nobody knows whether the scripts mean the same there", fmt.Sprintf("%s to %d", first, s.last))
	case major < s.first[0] || major == s.first[0] && minor < s.first[1]:
		j.find(Failure, "version", what, "scripts and rights are not tested there, and may mean something else",
			first+" or later")
	case major > s.last:
		j.find(Notice, "version", what+", newer than what is tested", "nothing that is known", "run the tests against it")
	}
}

func parseVersion(v string) (major, minor int, ok bool) {
	parts := strings.Split(v, ".")
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return major, minor, err1 == nil && err2 == nil
}

// memory warns before a limit is reached, where every acquire fails.
func (j *judgement) memory() {
	used, limit := number(j.text["used_memory"]), j.info.MaxMemory
	if limit <= 0 || used < limit/10*9 {
		return
	}
	severity, endangers := Warning, "soon it takes no more locks"
	if used >= limit {
		severity, endangers = Failure, "it takes no locks (OOM), and one failure less is survived"
	}
	j.find(severity, "memory", fmt.Sprintf("it uses %d of %d bytes of maxmemory", used, limit), endangers,
		"raise maxmemory, or keep other data elsewhere")
}

func (j *judgement) replicas(opts *CheckOptions) {
	if j.info.Role != "master" || j.info.Replicas == 0 {
		return
	}
	severity := Warning
	if opts.Unguarded {
		severity = Failure
	}
	j.find(severity, "replicas", fmt.Sprintf("it has %d replicas", j.info.Replicas),
		"a replica that is promoted in its place lacks the last writes: a lock may be given away, unless the restart "+
			"guard is on; and then its vote is lost for the guard time",
		"attach none; a promotion is survived only where the restart guard is on in the whole fleet")
}

// writes looks at what refused a write: it refuses locks as well.
func (j *judgement) writes() {
	code := fault.Code(j.write)
	if j.write == "" || code == "NOPERM" || j.info.Role != "master" || j.info.Loading { // told otherwise
		return
	}
	do := map[string]string{
		"OOM":        "raise maxmemory, or keep other data elsewhere",
		"MISCONF":    mendSnapshots,
		"NOREPLICAS": "CONFIG SET min-replicas-to-write 0: a master for locks has no replicas to wait for",
		"READONLY":   "name its master in its place",
		"BUSY":       "end the script that runs there: SCRIPT KILL",
	}[code]
	j.find(Failure, "writes", fmt.Sprintf("it refuses a write: %.200s", string(j.write)), noVote,
		cmp.Or(do, "read what it says"))
}

func (j *judgement) rights(p scripts.Prefix) {
	var needed, useful, costs []string
	for _, r := range j.lacking {
		if r.Lacking == "" {
			needed = append(needed, r.Rule)
			continue
		}
		useful = append(useful, r.Rule)
		if !slices.Contains(costs, r.Lacking) {
			costs = append(costs, r.Lacking)
		}
	}
	do := fmt.Sprintf("grant what locks need: ACL SETUSER %s %s", j.user, p.Rule())
	if len(needed) > 0 {
		j.find(Failure, "rights",
			fmt.Sprintf("the user %q may not, on keys %s:*: %s", j.user, p, strings.Join(needed, ", ")),
			"no lock can be taken or kept there, so "+noVote, do)
	}
	if len(useful) > 0 {
		j.find(Warning, "rights",
			fmt.Sprintf("the user %q may not, on channels %s:*: %s", j.user, p, strings.Join(useful, ", ")),
			strings.Join(costs, "; "), do)
	}
}

// persistence tells which setting lets a restart lose writes that were answered.
func (j *judgement) persistence() {
	if j.denied != "" {
		j.find(Warning, "persistence", "whether it remembers every write cannot be looked at: "+j.denied,
			"if it does not, a restart of it gives held locks away",
			"grant +config|get, or look at its configuration by hand")
		return
	}
	if len(j.wrong) == 0 {
		return
	}
	why := "the restart guard is off"
	if j.durable {
		why = "it is named as durable, so it votes at once after a restart"
	}
	j.find(Failure, "persistence", strings.Join(j.wrong, "; ")+"; and "+why,
		"a restart loses locks that are held, and gives them to a second holder",
		"set appendonly yes, appendfsync always and no-appendfsync-on-rewrite no, in its configuration file as well, or "+
			"let the guard make it wait")
}

// compare looks at what master i says beside the others: whether it is one of them, and its clock.
func compare(read []facts, i int, skew time.Duration) []Finding {
	j := &judgement{facts: &read[i]}
	if j.text == nil {
		return nil
	}
	k := slices.IndexFunc(read, func(f facts) bool { return f.info.RunID == j.info.RunID })
	if k < i && j.info.RunID != "" {
		j.find(Failure, "identity", fmt.Sprintf("it is the same server as %s (run_id %s)", read[k].name, j.info.RunID),
			"one server would have two votes, and its failure would cost both; "+noVote,
			"name different servers, each on a machine of its own")
	}
	var offsets []int64 // of the others' clocks from this one, in microseconds
	for _, f := range read {
		if f.text != nil {
			offsets = append(offsets, f.info.Time-j.info.Time-f.info.Read.Sub(j.info.Read).Microseconds())
		}
	}
	slices.Sort(offsets)
	j.clock(-offsets[len(offsets)/2], skew)
	return j.findings
}

func (j *judgement) clock(off int64, skew time.Duration) {
	const most = int64(1<<63-1) / int64(time.Microsecond)
	d := time.Duration(max(-most, min(off, most))) * time.Microsecond
	word := "ahead of"
	if d < 0 {
		word = "behind"
	}
	away := max(d, -d) - j.info.RTT/2
	what := fmt.Sprintf("its clock is %v %s the median of the masters; the bound is %v",
		max(d, -d).Round(10*time.Millisecond), word, skew)
	const do = "let chrony or ntpd set its clock, slowly and not by a jump"
	switch {
	case away > skew:
		j.find(Failure, "clock", what, "its votes are refused as stale or ahead, and after a restart it is never "+
			"admitted; one failure less is survived", do)
	case away > skew/2:
		j.find(Warning, "clock", what, "a little more, and its votes are lost", do)
	}
}
