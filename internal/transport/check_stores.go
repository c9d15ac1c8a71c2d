package transport

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/transport/sentinel"
)

// The rules of [Transport.Check] for a master that may be replaced by one of its replicas.

// askSentinels queries all sentinels of the master, if it has any.
func (f *facts) askSentinels(ctx context.Context, cfg *Config) {
	if cfg.finder != nil {
		f.answers = cfg.finder.Survey(ctx)
	}
}

// failsOver reports what a failover costs and endangers.
func (f *facts) failsOver(rule promotion) {
	what, do := f.stop.danger(rule, &f.info, f.user)
	switch {
	case what == "":
		f.find(Notice, "failover", fmt.Sprintf("a replica is promoted in its place after %v of silence", rule.after),
			"a failover costs its vote for the max TTL; locks that have their majority elsewhere go on", stepFailover)
	case f.cfg.twoHolders:
		f.find(Warning, "failover", what+"; two holders are allowed (AllowTwoHolders)",
			"while it is cut off together with some programs, a lock may be held twice", do)
	default:
		f.find(Failure, "failover", what, "cut off, it would give locks that the promoted one gives to others, so "+noVote+
			"; allow=two-holders in its URL accepts that", do)
	}
}

// sentinels checks the answers of the sentinels, and returns the rule by which they promote a replica.
func (f *facts) sentinels() (rule promotion, ok bool) {
	if f.cfg.tag != "" {
		return f.stop.rule, true
	}
	var best sentinel.Place
	var places []string
	for _, a := range f.answers {
		p := a.Place
		if a.Err != nil {
			f.find(Warning, "sentinels", fmt.Sprintf("its sentinel %s does not know its address: %v", a.Sentinel, a.Err),
				"one that is down more, and a failover is not found", stepSentinel)
			continue
		}
		if !ok {
			rule, best, ok = promotion{p.Replicas, p.DownAfter}, p, true
		}
		rule = promotion{max(rule.replicas, p.Replicas), min(rule.after, p.DownAfter)}
		if !slices.Contains(places, p.Addr) {
			places = append(places, p.Addr)
		}
		if p.Epoch > best.Epoch {
			best = p
		}
	}
	if len(places) > 1 {
		f.find(Warning, "sentinels", fmt.Sprintf("its sentinels disagree about its address: %q; the latest failover says %s",
			places, best.Addr), "programs that reach others of them may be led to the old master", stepDisagree)
	}
	if ok && best.Sentinels != len(f.answers) {
		f.find(Warning, "sentinels", fmt.Sprintf("%d sentinels watch over it, and %d are named", best.Sentinels,
			len(f.answers)), "those that are not named may promote a replica unheard", stepNameAll)
	}
	if ok && best.Quorum <= best.Sentinels/2 {
		f.find(Notice, "sentinels", fmt.Sprintf("%d of %d sentinels begin a failover", best.Quorum, best.Sentinels),
			"a failover that is not needed costs its vote for the max TTL", fmt.Sprintf(stepQuorum,
				f.cfg.finder.Name, best.Sentinels/2+1))
	}
	return rule, ok
}

// behind warns of replicas that have been silent for long.
func (f *facts) behind() {
	for i := range f.info.Replicas {
		lag, ok := lagOf(f.text, i)
		if !ok {
			f.find(Warning, "replicas", fmt.Sprintf("its replica %d is not in step yet (%s)", i, f.text[replica(i)]),
				"while it is not, the master takes no locks", stepWait)
		} else if lag > 2*time.Second {
			f.find(Warning, "replicas", fmt.Sprintf("its replica %d was heard of %v ago", i, lag),
				"beyond min-replicas-max-lag the master takes no locks", stepSilent)
		}
	}
}
