package diagnose

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// ThisHost names the host of the client in findings.
const ThisHost = "this host"

// A Client is what a client knows about the masters of one shard at one instant.
type Client struct {
	Prefix  string
	MaxTTL  time.Duration // max TTL of the client; 0 without the restart guard
	Shard   int           // the number of the shard, from 1; 0 without shards
	Name    string        // the name of the shard in findings and errors: "deployment", or "shard 1 of 2"
	View    *admission.View
	Able    quorum.Set           // the masters that can grant a lock
	Masters []redlockinfo.Master // in the order of the configuration
}

// Judge returns the verdict: what the report, the findings of [Masters], says about the masters, what the client knows
// about their admission, and whether a quorum can grant a lock. Without a report the verdict sends nothing. The
// findings are sorted by master, then by severity with the most severe first.
//
// Votes are replies: whether a master is able follows from its last replies to this client, as in Healthy, and never
// from the report. If the two contradict, the finding says that the master still votes.
func (c *Client) Judge(report []redlockinfo.Finding) redlockinfo.Verdict {
	longest := time.Duration(0)
	list := slices.DeleteFunc(slices.Clone(report), func(f redlockinfo.Finding) bool { return f.Master != ThisHost })
	for _, m := range c.Masters {
		longest = max(longest, m.MaxTTL)
	}
	for k, m := range c.Masters {
		able := c.Able.Has(c.View.Config.Order[k])
		own := slices.DeleteFunc(slices.Clone(report), func(f redlockinfo.Finding) bool { return f.Master != m.Addr })
		own = slices.DeleteFunc(own, func(f redlockinfo.Finding) bool { // the other master of the pair has the finding
			return f.About == "identity" && f.Fix == transport.StepDiffer && able
		})
		for n := range own {
			if own[n].NoVote && able {
				own[n].Severity, own[n].NoVote, own[n].Risk = warning, false, stillVotes
			}
		}
		own = append(own, c.admissionOf(&m, longest, own)...)
		if !able && !slices.ContainsFunc(own, noVote) {
			own = explain(&m, own)
		}
		list = append(list, own...)
	}
	v := redlockinfo.Verdict{CanLock: c.View.Config.Rule.Won(c.Able), Quorums: c.quorums(), Masters: c.Masters}
	v.Spare = max(0, slices.MinFunc(v.Quorums, bySpare).Spare())
	list = slices.DeleteFunc(list, func(f redlockinfo.Finding) bool { return c.ofWrongList(&f) })
	if !v.CanLock {
		for i := range list {
			list[i].Risk = strings.Replace(list[i].Risk, transport.FewerFailures, noLock, 1)
		}
	}
	list = append(list, c.quorumFindings(v.Quorums, list)...)
	order := make(map[string]int, len(c.Masters))
	for k, m := range c.Masters {
		order[m.Addr] = k + 1
	}
	slices.SortStableFunc(list, func(a, b redlockinfo.Finding) int {
		return cmp.Or(cmp.Compare(order[a.Master], order[b.Master]), cmp.Compare(b.Severity, a.Severity))
	})
	v.Findings = list
	return v
}

const (
	noLock     = "no lock can be acquired"
	stillVotes = "it still votes, but it refuses some calls, or clients that connect now"
)

func noVote(f redlockinfo.Finding) bool { return f.NoVote }

func bySpare(a, b redlockinfo.Quorum) int { return cmp.Compare(a.Spare(), b.Spare()) }

// Join returns the verdict on all shards. If no master has a record, not even in another database, no client that
// acquires locks is running with this prefix, so the masters may be new.
func Join(shards []redlockinfo.Verdict) (v redlockinfo.Verdict) {
	for i, s := range shards {
		if i == 0 || !s.CanLock || v.CanLock && s.Spare < v.Spare {
			v.CanLock, v.Spare = s.CanLock, s.Spare
		}
		v.Quorums, v.Masters = append(v.Quorums, s.Quorums...), append(v.Masters, s.Masters...)
		for _, f := range s.Findings {
			if f.Master != ThisHost || !slices.Contains(v.Findings, f) {
				v.Findings = append(v.Findings, f)
			}
		}
	}
	for i := range v.Findings {
		if f := &v.Findings[i]; f.About == "quorum" && !slices.ContainsFunc(shards, used) {
			f.Fix = admission.StepNew
		}
	}
	return v
}

// used reports whether a client that acquires locks may have used the masters of s. An empty s is unknown.
func used(s redlockinfo.Verdict) bool {
	return len(s.Masters) == 0 || slices.ContainsFunc(s.Masters, func(m redlockinfo.Master) bool {
		return m.State != redlockinfo.StateQuarantine || m.MaxTTL > 0
	}) || slices.ContainsFunc(s.Findings, func(f redlockinfo.Finding) bool { return f.About == "databases" })
}

// explain returns the findings about a master that can grant no lock although none of them says so.
func explain(m *redlockinfo.Master, own []redlockinfo.Finding) []redlockinfo.Finding {
	for n := range own { // one that explains the state
		if own[n].Severity == failure && m.State != redlockinfo.StateDown {
			own[n].NoVote = true
			return own
		}
	}
	return append(own, ofError(m))
}

// ofError returns the finding about a master that can grant no lock, with what its error says, and the step for that.
func ofError(m *redlockinfo.Master) redlockinfo.Finding {
	f := redlockinfo.Finding{
		Master: m.Addr, Severity: failure, About: "connection", NoVote: true, What: "it is " + string(m.State),
		Risk: sayNoVote, Fix: admission.StepAgain,
	}
	var e *transport.Error
	var unfit *transport.UnfitError
	switch {
	case m.Err == nil:
	case errors.As(m.Err, &unfit):
		f.About, f.What, f.Risk, f.Fix = unfit.About, unfit.What, unfit.Risk, unfit.Fix
	case errors.As(m.Err, &e):
		about, do := e.Advice(cmp.Or(e.User, "USER"))
		f.About, f.What = about, Reason(m.Addr, m.Err)
		switch {
		case do != "":
		case fault.CauseOf(e.Err) == fault.Hangs:
			do = transport.StepHangs
		case e.Op == "connect":
			do = unreached(e)
		case errors.As(e.Err, new(redis.Error)):
			do = transport.StepMessage
		}
		if do != "" {
			f.Fix = do
		}
	default:
		f.What = Reason(m.Addr, m.Err)
	}
	return f
}

// quorums returns the quorums of the shard.
func (c *Client) quorums() (list []redlockinfo.Quorum) {
	r := c.View.Config.Rule
	for k, set := range r.Sets() {
		q := redlockinfo.Quorum{
			Shard: c.Shard, Able: (c.Able & set).Len(), Needed: quorum.Quorum(set.Len()), N: set.Len(),
		}
		if r.Joint() {
			q.Set = []string{"old", "next"}[k]
		}
		list = append(list, q)
	}
	return list
}

// ofWrongList reports whether a finding only follows from the wrong list of this client, which has findings of its own:
// the records of other masters do not name the master of the finding, or the finding repeats the list of such a record.
func (c *Client) ofWrongList(f *redlockinfo.Finding) bool {
	wrong, named := false, false
	for k, i := range c.View.Config.Order {
		st, other := &c.View.Masters[i], c.Masters[k].Addr != f.Master
		own := admission.WrongList(st.Err) && st.Text != "" && !st.Agrees
		switch {
		case !other && f.About == "list":
			return !own
		case other && own:
			wrong, named = true, named || admission.Names(&st.Record, f.Master)
		}
	}
	return wrong && !named
}

// quorumFindings returns a finding for each set of masters of which no quorum, or just a quorum, can grant a lock. If
// the list of this client is the reason, it returns none.
func (c *Client) quorumFindings(
	sets []redlockinfo.Quorum, found []redlockinfo.Finding,
) (list []redlockinfo.Finding) {
	if slices.ContainsFunc(found, func(f redlockinfo.Finding) bool { return f.About == "list" }) {
		return nil
	}
	for k, q := range sets {
		f := redlockinfo.Finding{Master: c.Name, About: "quorum", What: q.String()}
		switch {
		case q.Able < q.Needed:
			f.Severity, f.Risk, f.Fix = failure, noLock, c.way(c.View.Config.Rule.Sets()[k], found)
		case q.Able > q.Needed:
			continue
		case q.Able == q.N: // of one master, or of two
			f.Severity, f.Risk, f.Fix = notice, oneLess, moreMasters
		default:
			f.Severity, f.Risk, f.Fix = warning, oneLess, admission.StepMasters
		}
		list = append(list, f)
	}
	return list
}

// moreMasters is the advice for a deployment of one master or two, which may be what its operator wants.
const moreMasters = "use three masters or more: with fewer, no failure is tolerated; redlock set FILE adds them"

const oneLess = "if one of them fails, no lock can be acquired"

// way returns the step that gives a set of masters a quorum again.
func (c *Client) way(set quorum.Set, found []redlockinfo.Finding) string {
	up := set
	for k, i := range c.View.Config.Order {
		if slices.ContainsFunc(found, func(f redlockinfo.Finding) bool { // others run, and refuse this client
			silent := f.Fix == stepStart || f.Fix == stepSocket || f.Fix == stepReach ||
				f.Fix == transport.StepHangs
			return f.Master == c.Masters[k].Addr && f.NoVote && silent
		}) {
			up &^= quorum.One(i)
		}
	}
	if !up.MajorityOf(set) {
		return admission.StepDown
	}
	return admission.StepMasters
}

// Reason returns the text of an error about a master, without the names of the package and of the master, so that the
// errors of several masters can be equal, and without advice, since findings have their own.
func Reason(master string, err error) string {
	err, _ = admission.Advice(err)
	text := err.Error()
	var e *transport.Error
	var unfit *transport.UnfitError
	switch {
	case errors.As(err, &unfit):
		text = unfit.What
	case errors.As(err, &e):
		text = e.WithoutAdvice()
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "redlock: "), "pool: "+master+": ")
}

// Why returns why a master does not vote, without what its state says already; "" if there is no reason.
func Why(m *redlockinfo.Master) string {
	if m.Err == nil {
		return ""
	}
	text := Reason(m.Addr, m.Err)
	switch m.State {
	case redlockinfo.StateDown:
		return strings.Replace(text, "master is down: ", "", 1)
	case redlockinfo.StateQuarantine:
		return strings.TrimLeft(strings.TrimPrefix(text, "the master is in quarantine"), ", ")
	}
	return text
}

// admissionOf returns the problems of the admission of one master. longest is the largest max TTL on any master. It
// does not repeat that the master is down, and omits what own, the other findings about the master, explain.
func (c *Client) admissionOf(
	m *redlockinfo.Master, longest time.Duration, own []redlockinfo.Finding,
) (list []redlockinfo.Finding) {
	explained := func(about string) bool {
		return slices.ContainsFunc(own, func(f redlockinfo.Finding) bool {
			return f.Severity == failure && (about == "" || f.About == about)
		})
	}
	find := func(s redlockinfo.Severity, about, what, risk, fix string) {
		list = append(list, redlockinfo.Finding{
			Master: m.Addr, Severity: s, About: about, NoVote: risk == sayNoVote, What: what, Risk: risk, Fix: fix,
		})
	}
	wrongClock := explained("clock")
	switch m.State {
	case redlockinfo.StateQuarantine:
		if wrongClock { // the master stays in quarantine until its clock is corrected
			break
		}
		what := Reason(m.Addr, m.Err)
		if m.Left > 0 {
			what += fmt.Sprintf("; %v left", m.Left.Round(time.Second))
		}
		find(warning, "quarantine", what, sayNoVote, admission.StepNothing)
	case redlockinfo.StateBlocked:
		cause, fix := admission.Advice(m.Err)
		switch {
		case wrongClock && errors.Is(m.Err, admission.ErrQuarantine):
		case errors.Is(m.Err, admission.ErrNotDurable):
			if !explained("persistence") {
				find(failure, "persistence", Reason(m.Addr, cause), sayNoVote, fix)
			}
		case admission.WrongList(m.Err):
			find(failure, "list", Reason(m.Addr, cause), sayNoVote, fix)
		case errors.Is(m.Err, admission.ErrShardLayout):
			find(failure, "shards", "it cannot be admitted: "+Reason(m.Addr, cause), sayNoVote, fix)
		case transport.IsWrongType(m.Err):
			find(failure, "record", "another program has written its admission record: "+Reason(m.Addr, cause), sayNoVote,
				fmt.Sprintf(stepForeign, scripts.Prefix(c.Prefix).Admission()))
		case fix == admission.StepOthers && !explained(""):
			find(failure, "quarantine", "it cannot be admitted: "+Reason(m.Addr, cause), sayNoVote, ofError(m).Fix)
		default:
			find(failure, "quarantine", "it cannot be admitted: "+Reason(m.Addr, cause), sayNoVote, fix)
		}
	case redlockinfo.StateConnecting:
		if explained("") {
			break
		}
		find(warning, "quarantine", "it is not known yet whether the master votes", sayNoVote, admission.StepAgain)
	case redlockinfo.StateFailing:
		if !explained("") {
			f := ofError(m)
			find(failure, "failing", "it grants no locks: "+f.What, sayNoVote, f.Fix)
		}
	}
	switch {
	case m.MaxTTL == 0:
	case m.MaxTTL < longest:
		find(warning, "max TTL",
			fmt.Sprintf("it accepts TTLs up to %v, another master accepts TTLs up to %v", m.MaxTTL, longest),
			"this master rejects longer TTLs", fmt.Sprintf(admission.StepMaxTTL, longest))
	case c.MaxTTL > m.MaxTTL:
		find(notice, "max TTL",
			fmt.Sprintf("the deployment accepts TTLs up to %v, but the max TTL of this client is %v", m.MaxTTL, c.MaxTTL),
			"longer TTLs are rejected", fmt.Sprintf(admission.StepMaxTTL, c.MaxTTL))
	}
	return list
}
