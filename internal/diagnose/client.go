package diagnose

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Failing is the state of a master that votes but grants no locks.
const Failing = "failing"

// A Client is what a client knows about the masters of one shard at one instant.
type Client struct {
	Prefix  string
	Guard   time.Duration // max TTL of the client; 0 without the restart guard
	Name    string        // the name of the shard in findings and errors: "deployment", or "shard 1 of 2"
	View    *admission.View
	Able    quorum.Set           // the masters that can grant a lock
	Masters []redlockinfo.Master // in the order of the configuration
}

// Judge adds to the findings about the masters what the client knows about their admission, and whether no quorum can
// grant a lock. The result is sorted by master, then by severity with the most severe first.
func (c *Client) Judge(list []redlockinfo.Finding) []redlockinfo.Finding {
	longest := time.Duration(0)
	for _, m := range c.Masters {
		longest = max(longest, m.MaxTTL)
	}
	for _, m := range c.Masters {
		var failures []string
		for _, f := range list {
			if f.Master == m.Addr && f.Severity == failure {
				failures = append(failures, f.About)
			}
		}
		list = append(list, admissionOf(&m, c.Guard, longest, failures)...)
	}
	list = slices.DeleteFunc(list, func(f redlockinfo.Finding) bool { return c.ofWrongList(&f) })
	if !c.View.Config.Rule.Won(c.Able) {
		for i := range list {
			list[i].Risk = strings.Replace(list[i].Risk, transport.FewerFailures, "no lock can be acquired", 1)
		}
		list = append(list, c.quorum(list, longest)...)
	}
	order := make(map[string]int, len(c.Masters))
	for k, m := range c.Masters {
		order[m.Addr] = k + 1
	}
	slices.SortStableFunc(list, func(a, b redlockinfo.Finding) int {
		return cmp.Or(cmp.Compare(order[a.Master], order[b.Master]), cmp.Compare(b.Severity, a.Severity))
	})
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
		case !other && f.About == "list" && !own:
			return true
		case other && own:
			wrong, named = true, named || admission.Names(&st.Record, f.Master)
		}
	}
	return wrong && !named
}

// quorum returns the finding that no quorum can grant a lock. It returns none if the list of this client is the
// reason. longest is the largest max TTL on any master.
func (c *Client) quorum(found []redlockinfo.Finding, longest time.Duration) []redlockinfo.Finding {
	r := c.View.Config.Rule
	if slices.ContainsFunc(found, func(f redlockinfo.Finding) bool { return f.About == "list" }) {
		return nil
	}
	var down quorum.Set
	for k, i := range c.View.Config.Order {
		if slices.ContainsFunc(found, func(f redlockinfo.Finding) bool {
			return f.Master == c.Masters[k].Addr && f.About == "connection"
		}) {
			down |= quorum.One(i)
		}
	}
	fix := admission.StepMasters
	fresh := func(m redlockinfo.Master) bool { return m.State == admission.InQuarantine.String() }
	switch {
	case !r.Won(r.All() &^ down):
		fix = admission.StepDown
	case longest == 0 && slices.ContainsFunc(c.Masters, fresh):
		fix = fmt.Sprintf(admission.StepPrefix, c.Prefix)
	}
	return []redlockinfo.Finding{{
		Master: c.Name, Severity: failure, About: "quorum",
		What: fmt.Sprintf("%d of %d masters can grant a lock, %d are needed", c.Able.Len(), r.N(), r.Least()),
		Risk: "no lock can be acquired", Fix: fix,
	}}
}

// plain returns the text of an error without the name of the package.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "redlock: "), "pool: ")
}

// admissionOf returns the problems of the admission of one master. guard is the max TTL of this client, and longest the
// largest max TTL on any master. failures lists the subjects of other findings about the master. It does not
// repeat that the master is down, and omits problems that failures explain.
func admissionOf(m *redlockinfo.Master, guard, longest time.Duration, failures []string) (list []redlockinfo.Finding) {
	find := func(s redlockinfo.Severity, about, what, risk, fix string) {
		list = append(list, redlockinfo.Finding{
			Master: m.Addr, Severity: s, About: about, What: what, Risk: risk, Fix: fix,
		})
	}
	wrongClock := slices.Contains(failures, "clock")
	switch m.State {
	case admission.InQuarantine.String():
		if wrongClock { // the master stays in quarantine until its clock is corrected
			break
		}
		what := plain(m.Err)
		if m.Left > 0 {
			what += fmt.Sprintf(", %v from now", m.Left.Round(time.Second))
		}
		find(warning, "quarantine", what, noVote, admission.StepNothing)
	case admission.Blocked.String():
		cause, fix := admission.Advice(m.Err)
		switch {
		case wrongClock && errors.Is(m.Err, admission.ErrQuarantine):
		case errors.Is(m.Err, admission.ErrNotDurable):
			if !slices.Contains(failures, "persistence") {
				find(failure, "persistence", plain(cause), noVote, fix)
			}
		case admission.WrongList(m.Err):
			find(failure, "list", plain(cause), noVote, fix)
		case errors.Is(m.Err, admission.ErrShardLayout):
			find(failure, "shards", "it cannot be admitted: "+plain(cause), noVote, fix)
		default:
			find(failure, "quarantine", "it cannot be admitted: "+plain(cause), noVote, fix)
		}
	case admission.Connecting.String():
		find(warning, "quarantine", "it is not known yet whether the master votes", noVote, admission.StepAgain)
	case Failing:
		if len(failures) == 0 {
			find(failure, "failing", "it grants no locks: "+plain(m.Err), noVote, admission.StepAgain)
		}
	}
	switch {
	case m.MaxTTL == 0:
	case m.MaxTTL < longest:
		find(warning, "max TTL",
			fmt.Sprintf("it accepts TTLs up to %v, another master accepts TTLs up to %v", m.MaxTTL, longest),
			"this master rejects longer TTLs", fmt.Sprintf(admission.StepGuard, longest))
	case guard > m.MaxTTL:
		find(notice, "max TTL",
			fmt.Sprintf("the deployment accepts TTLs up to %v, but the max TTL of this client is %v", m.MaxTTL, guard),
			"longer TTLs are rejected", fmt.Sprintf(admission.StepGuard, guard))
	}
	return list
}
