package redlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/pool"
)

// Check tells what is not as it should be on the masters: what [pool.Pool.Check] finds with the prefix, the guard time and
// the durable masters of this Locker, and what stands in the way of their votes: quarantines, with the time that is left,
// guard times that differ, markers that cannot be read. The findings are sorted by master, and by severity, the gravest
// first. Nothing is the good answer.
//
// It asks over connections of its own, sets one short-lived key below the prefix on each master, and returns within two
// dial timeouts, or when ctx ends.
func (l *Locker) Check(ctx context.Context) ([]pool.Finding, error) {
	if !l.enter() {
		return nil, ErrClosed
	}
	defer l.leave()
	opts := pool.CheckOptions{Prefix: l.cfg.prefix, Skew: openWindow, Unguarded: l.cfg.guard == 0}
	states := l.Ready(ctx)
	if l.cfg.guard > 0 {
		opts.Skew = fleetsGuardTime(states, l.cfg.guard) / 2
	}
	for _, i := range l.set.Load().order {
		if l.homeOf(i) != "" {
			opts.Durable = append(opts.Durable, l.pool.Addr(i))
		}
	}
	list, err := l.pool.Check(ctx, opts)
	if err != nil {
		return nil, err
	}
	order := make(map[string]int, len(states))
	for i, m := range states {
		order[m.Addr] = i
		list = append(list, l.admissionFindings(m, fleetsGuardTime(states, l.cfg.guard))...)
	}
	slices.SortStableFunc(list, func(a, b pool.Finding) int {
		return cmp.Or(cmp.Compare(order[a.Master], order[b.Master]), cmp.Compare(b.Severity, a.Severity))
	})
	return list, nil
}

// fleetsGuardTime is the largest in the markers, own where there is none.
func fleetsGuardTime(states []MasterInfo, own time.Duration) time.Duration {
	g := time.Duration(0)
	for _, m := range states {
		g = max(g, m.Guard)
	}
	if g == 0 {
		return own
	}
	return g
}

// admissionFindings are about one master's marker. That it is down is not told again.
func (l *Locker) admissionFindings(m MasterInfo, fleet time.Duration) (list []pool.Finding) {
	find := func(s pool.Severity, about, what, endangers, do string) {
		list = append(list, pool.Finding{Master: m.Addr, Severity: s, About: about, What: what, Endangers: endangers, Do: do})
	}
	const noVote = "until then it has no vote, and one failure less is survived"
	switch m.State {
	case phaseNames[phasePending]:
		find(pool.Warning, "quarantine", fmt.Sprintf("it is new, or may have forgotten locks, and is in quarantine for another %v", m.Left.Round(time.Millisecond)),
			noVote, "wait; or, where nobody can hold a lock of this prefix, admit it (AdmitNow, redlock admit)")
	case phaseNames[phaseBlocked]:
		find(pool.Failure, "quarantine", fmt.Sprintf("it cannot be admitted: %v", m.Err), "it has no vote, and one failure less is survived", "mend what it says")
	case phaseNames[phaseConnecting]:
		find(pool.Warning, "quarantine", "whether it votes is not known yet", noVote, "ask again in a moment")
	}
	switch {
	case m.Guard == 0:
	case m.Guard < fleet:
		find(pool.Warning, "guard time", fmt.Sprintf("its marker has the guard time %v, that of another master has %v", m.Guard, fleet),
			fmt.Sprintf("it refuses TTLs above %v, and has no vote on them", m.Guard), fmt.Sprintf("raise it once more: redlock guard -set %v", fleet))
	case l.cfg.guard > m.Guard:
		find(pool.Notice, "guard time", fmt.Sprintf("the guard time of the fleet is %v, that of this program %v", m.Guard, l.cfg.guard),
			fmt.Sprintf("TTLs above %v are refused", m.Guard), fmt.Sprintf("raise it in the fleet (redlock guard -set %v), or lower WithGuardTime", l.cfg.guard))
	}
	return list
}
