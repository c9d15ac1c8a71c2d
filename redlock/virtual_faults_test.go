package redlock_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// fault makes one fault.
func (s *simulation) fault() {
	m := s.masters.Master(s.random.IntN(simMasters))
	switch s.random.IntN(22) {
	case 0, 1, 2:
		m.Delay(0)
	case 3, 4, 5:
		long := time.Millisecond + s.upTo(100*time.Millisecond)
		m.DelayFunc(func() time.Duration { return s.delayed.duration(long) })
	case 6: // now and then a message takes longer than the pool waits
		m.DelayFunc(func() time.Duration {
			if s.delayed.duration(12) == 0 {
				return s.delayed.duration(2 * time.Second)
			}
			return s.delayed.duration(20 * time.Millisecond)
		})
	case 7, 8: // what is sent now is late, and overtaken by what comes on the next connection
		m.Delay(300*time.Millisecond + s.upTo(2*time.Second))
		s.later(s.upTo(200*time.Millisecond), func() { m.Delay(0) })
	case 9, 10:
		m.DropRequests(1)
	case 11, 12:
		m.DropReplies(1)
	case 13, 14:
		m.CutConnections()
	case 15, 16:
		m.Hang()
		s.later(s.upTo(1500*time.Millisecond), m.Resume)
	case 17:
		m.Refuse("OOM command not allowed when used memory > 'maxmemory'.")
		s.later(s.upTo(time.Second), func() { m.Refuse("") })
	case 18, 19:
		s.crash()
	case 20:
		s.clients[s.random.IntN(len(s.clients))].suspend(s.upTo(simGuard / 2))
	}
}

// crash stops a master, with its memory or without, or flushes it. At most two of five have forgotten something within
// the last guard time.
func (s *simulation) crash() {
	i := s.random.IntN(simMasters)
	m := s.masters.Master(i)
	recent := 0
	for j, at := range s.forgot {
		if j != i && time.Since(at) < simGuard+2*time.Second {
			recent++
		}
	}
	forgets := recent < 2 && s.random.IntN(3) > 0
	if forgets {
		s.forgot[i] = time.Now()
	}
	if forgets && s.random.IntN(3) == 0 {
		m.Flush()
		return
	}
	if s.random.IntN(2) == 0 {
		m.Restart(!forgets)
		return
	}
	m.Stop()
	s.later(s.upTo(time.Second), func() { m.Restart(!forgets) })
}

// later has f called once: after d, or when the faults end, if that is before.
func (s *simulation) later(d time.Duration, f func()) {
	f = sync.OnceFunc(f)
	s.pending = append(s.pending, f)
	time.AfterFunc(d, f)
}

// suspend stops the machine of p for a while: its clock, and everything on its wire. Its goroutines would go on, but
// there is nothing that they hear of.
func (p *program) suspend(d time.Duration) {
	synctest.Wait() // nothing of it is half done
	p.mu.Lock()
	select {
	case <-p.awake:
		p.awake = make(chan struct{})
		p.clock.suspend()
		p.wire.freeze()
	default: // it is suspended already
	}
	p.mu.Unlock()
	p.s.later(d, p.wake)
}

func (p *program) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.awake:
	default:
		p.clock.resume()
		p.wire.thaw()
		close(p.awake)
	}
}

// waitAwake waits while p is suspended.
func (p *program) waitAwake() {
	p.mu.Lock()
	awake := p.awake
	p.mu.Unlock()
	<-awake
}

// work takes one lock, holds it for a while, and gives it back in one of several ways.
func (p *program) work(round context.Context, random *rand.Rand) {
	name := simNames[random.IntN(len(simNames))]
	ttl := 200*time.Millisecond + time.Duration(random.Int64N(int64(simGuard-200*time.Millisecond)))
	if random.IntN(3) == 0 {
		ttl = 200*time.Millisecond + time.Duration(random.IntN(300))*time.Millisecond
	}
	extend := random.IntN(2) == 0
	ctx, cancel := context.WithTimeout(round, time.Duration(random.Int64N(int64(3*time.Second))))
	defer cancel()
	opts := []redlock.LockOption{redlock.WithTTL(ttl), redlock.WithExtension(extend)}
	take := p.locker.Lock
	if random.IntN(4) == 0 {
		take = p.locker.TryLock
	}
	k, err := take(ctx, name, opts...)
	p.waitAwake()
	if err != nil {
		idle(round, time.Duration(random.IntN(50)+1)*time.Millisecond)
		return
	}
	if left := k.Remaining(); left < ttl/2 {
		p.s.problem("%s: handed out with %v of validity left of %v", name, left, ttl)
	}
	p.hold(round, k, ttl, random)
}

// hold believes in k for a while. The belief ends with the lock, at the latest with its validity.
func (p *program) hold(round context.Context, k *redlock.Lock, ttl time.Duration, random *rand.Rand) {
	t := tenure{name: k.Name(), client: p.index, token: k.Token(), from: time.Now()}
	if random.IntN(6) == 0 {
		inner, err := p.locker.TryLock(k.Context(round), k.Name(), redlock.WithTTL(ttl))
		p.waitAwake()
		if err == nil {
			if inner.Token() != t.token {
				p.s.problem("%s: a re-entry has token %d, its hold %d", t.name, inner.Token(), t.token)
			}
			_ = inner.Unlock(round)
		}
	}
	long := time.Duration(random.Int64N(int64(200 * time.Millisecond)))
	if random.IntN(4) == 0 {
		long = simGuard // to its end, if it is not extended
	}
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-k.Done():
	case <-timer.C:
	case <-round.Done():
	}
	p.waitAwake()
	left := k.Remaining()
	t.to = time.Now().Add(time.Duration(float64(min(left, 0)) / p.rate))
	p.s.book(t)
	p.giveBack(k, random)
}

// giveBack releases k, or hands it to another program.
func (p *program) giveBack(k *redlock.Lock, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.IntN(1000))*time.Millisecond)
	defer cancel()
	if random.IntN(25) > 0 {
		_ = k.Unlock(ctx)
		p.waitAwake()
		return
	}
	handle, err := k.Export()
	if err != nil {
		_ = k.Unlock(ctx)
		return
	}
	other := p.s.clients[random.IntN(len(p.s.clients))]
	next, err := other.locker.Import(ctx, handle, redlock.WithTTL(simGuard/2))
	other.waitAwake()
	p.s.mu.Lock()
	p.s.loose = true
	p.s.imports++
	p.s.mu.Unlock()
	if err != nil {
		return
	}
	other.hold(ctx, next, simGuard/2, random)
}

func (s *simulation) book(t tenure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenures = append(s.tenures, t)
}

// idle waits for d or the end of ctx.
func idle(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// overlaps lists what is wrong with the tenures: two of one name at one time, or a token that is not larger than those
// of the tenures that began before.
func overlaps(list []tenure) (problems []string) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b tenure) int {
		return cmp.Or(cmp.Compare(a.name, b.name), a.from.Compare(b.from), cmp.Compare(a.token, b.token))
	})
	var open, top tenure // the one that ends last, and the one with the largest token
	for i, t := range list {
		if i == 0 || list[i-1].name != t.name {
			open, top = t, t
			continue
		}
		if t.from.Before(open.to) {
			problems = append(problems, fmt.Sprintf("%s: two holders for %v: program %d with token %d since %v, program %d with token %d",
				t.name, minTime(open.to, t.to).Sub(t.from), open.client, open.token, t.from.Sub(open.from), t.client, t.token))
		}
		if t.token <= top.token {
			problems = append(problems, fmt.Sprintf("%s: program %d has token %d after token %d of program %d",
				t.name, t.client, t.token, top.token, top.client))
		}
		if t.to.After(open.to) {
			open = t
		}
		if t.token > top.token {
			top = t
		}
	}
	return problems
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
