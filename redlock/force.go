package redlock

import (
	"context"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// ForceRelease takes the grant with this id from whoever holds it; [Locker.Who] and [Locker.Inspect] tell the id. It is
// for people who know that the holder is dead or hangs, and do not want to wait for the end of its TTL.
//
// It endangers what the lock protects: the holder, if it lives, finds out at its next extension, a third of its TTL
// later, and until then two programs may believe that they hold the name. Only a resource that refuses a smaller token
// than it has seen is safe: the next holder has a larger one.
//
// On every master that can be reached this grant is deleted, and no other, and the fence is raised to a new ballot, so
// that a late message of the holder is refused. Then the first waiter is told, as by any release.
//
// It returns how many masters had the grant and have deleted it. The error is nil where no quorum of the masters can
// still have it; then the holder cannot extend it. Otherwise it is ErrNoQuorum, with the reason of each master that did
// not answer: the holder may give the lock back to the others, so call it again. Calling it again is harmless.
func (l *Locker) ForceRelease(ctx context.Context, name, id string) (released int, err error) {
	if err := scripts.CheckName(name); err != nil {
		return 0, invalid("%v", err)
	}
	if owner, _ := scripts.GrantLabel(id); owner == "" {
		return 0, invalid("%.80q is no id of a grant", id)
	}
	if !l.enter() {
		return 0, ErrClosed
	}
	defer l.leave()
	view, _, hs, err := l.askAll(ctx, "force release", name)
	if err != nil {
		return 0, err
	}
	fences := make([]int64, 0, len(hs))
	for _, h := range hs {
		fences = append(fences, h.Fence)
	}
	floor := ballot.Floor(fences, view.Config.N(), view.Config.N()-len(hs))
	above, _, err := l.ballots.Propose(l.cfg.clock.Now(), name, floor, 0)
	if err != nil {
		return 0, failed("force release", name, err)
	}
	keys := scripts.Prefix(l.cfg.prefix).Keys(name)
	call := view.Encoder.Release(&keys, scripts.Ending{Grants: []string{id}, Ballot: above, Always: true})
	r := l.sender.New(view, "force release", nil)
	var without quorum.Set
	cause := l.toAll(ctx, view, call, func(a answer) {
		r.Reply(a.master, a.value, a.err)
		if had, err := scripts.DecodeReleased(a.value); a.err == nil && err == nil {
			without |= quorum.One(a.master)
			if had {
				released++
			}
		}
	})
	if view.Config.Rule.Won(without) {
		return released, nil
	}
	return released, failed("force release", name, r.Failure(ErrNoQuorum, cause))
}
