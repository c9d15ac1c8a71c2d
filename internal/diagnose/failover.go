package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/sentinel"
)

// The rules of [Masters] for a master that may be replaced by one of its replicas.

// failsOver reports the cost of a failover, and the danger if the master may keep granting locks during it.
func (f *facts) failsOver(rule transport.Promotion, q *inquiry) {
	what, do := f.stop.Danger(rule, &f.info, f.user)
	if do == fmt.Sprintf(transport.ConfigRight, f.user) {
		do = f.grant(q.Prefix)
	}
	switch {
	case what == "":
		f.find(notice, "failover", fmt.Sprintf("a replica replaces it after %v of silence", rule.After),
			"after a failover it does not vote until the max TTL has passed; locks held on a majority of other masters "+
				"survive", stepFailover)
	case f.cfg.TwoHolders:
		f.find(warning, "failover", what+"; two holders are allowed (AllowTwoHolders)",
			"while a partition isolates it with some clients, a lock may have two holders", do)
	default:
		f.noVote("failover", what, "in a partition it would keep granting locks while the promoted replica grants "+
			"them to other clients; "+sayNoVote+"; allow=two-holders in its URL accepts that", do)
	}
}

// sentinels checks the answers of the sentinels, and returns the rule by which a replica is promoted. In a cluster, it
// returns the rule that the node reported. If no rule is known, ok is false.
func (f *facts) sentinels() (rule transport.Promotion, ok bool) {
	if f.cfg.InCluster() {
		return f.stop.Rule(), true
	}
	best, n := sentinel.Latest(f.answers)
	if n == 0 { // the master cannot be found either, which another finding reports
		return rule, false
	}
	var places, texts []string
	silent := map[string][]string{} // addresses by text
	for _, a := range f.answers {
		if a.Err == nil {
			if !slices.Contains(places, a.Value.Addr) {
				places = append(places, a.Value.Addr)
			}
			continue
		}
		text := sentinel.Reason(a)
		if silent[text] == nil {
			texts = append(texts, text)
		}
		silent[text] = append(silent[text], a.Addr)
	}
	for _, text := range texts {
		who := "sentinel " + silent[text][0] + " does"
		if len(silent[text]) > 1 {
			who = "sentinels " + strings.Join(silent[text], ", ") + " do"
		}
		f.find(warning, "sentinels", fmt.Sprintf("its %s not know its address: %s", who, text),
			"if more sentinels are down, clients cannot find the new master after a failover", stepSentinel)
	}
	if len(places) > 1 {
		f.find(warning, "sentinels", fmt.Sprintf("its sentinels disagree about its address: %q; the latest failover says %s",
			places, best.Addr), "clients may connect to the old master", stepDisagree)
	}
	if best.Sentinels != len(f.answers) {
		f.find(warning, "sentinels", fmt.Sprintf("it has %s, but the URL lists %d",
			transport.Count(best.Sentinels, "sentinel"), len(f.answers)),
			"the unlisted ones may promote a replica unnoticed", stepNameAll)
	}
	if best.Quorum <= best.Sentinels/2 {
		f.find(notice, "sentinels", fmt.Sprintf("%d of %d sentinels can start a failover", best.Quorum, best.Sentinels),
			"after an unnecessary failover it does not vote until the max TTL has passed", fmt.Sprintf(stepQuorum,
				f.service, best.Sentinels/2+1))
	}
	return transport.Promotion{Replicas: best.Replicas, After: best.DownAfter}, true
}

// behind warns of replicas that are not in sync, or have been silent for more than 2 s.
func (f *facts) behind() {
	for i := range f.info.Replicas {
		lag, ok := transport.LagOf(f.text, i)
		if !ok {
			about := f.text[transport.ReplicaField(i)]
			f.find(warning, "replicas", fmt.Sprintf("its replica %d has not synchronized yet (%s)", i, about),
				"until then the master grants no locks", stepWait)
		} else if lag > 2*time.Second {
			f.find(warning, "replicas", fmt.Sprintf("its replica %d was last seen %v ago", i, lag),
				"beyond min-replicas-max-lag the master grants no locks", stepSilent)
		}
	}
}
