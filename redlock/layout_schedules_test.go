package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/sharding"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// A reshard is one schedule of a change of the number of shards: from the sets of masters old to the sets next.
type reshard struct {
	*shardedCluster
	rnd       *rand.Rand
	old, next []int
	names     []string // belong to another set afterwards

	outdated *severable // the client with the old shards

	mu     sync.Mutex
	holder map[string]string
	log    []string
	counts map[string]int // by client: number of locks
}

// reshards are the changes that are drawn.
var reshards = [][2][]int{
	{{0, 1, 2}, {0, 1}}, {{0, 1, 2}, {2, 1}}, {{0, 1, 2}, {1}}, {{0, 1}, {0}}, {{0, 1}, {1}},
	{{0, 1}, {0, 1, 2}}, {{0, 1}, {2, 0, 1}}, {{0}, {0, 1}}, {{1}, {0, 1, 2}},
}

func newReshard(w *shardedCluster, rnd *rand.Rand) *reshard {
	change := reshards[rnd.IntN(len(reshards))]
	r := &reshard{
		shardedCluster: w, rnd: rnd, old: change[0], next: change[1], outdated: newSeverable(),
		holder: map[string]string{}, counts: map[string]int{},
	}
	for i := 0; len(r.names) < 4; i++ {
		if n := fmt.Sprint("n", i); r.old[sharding.Pick(n, len(r.old))-1] != r.next[sharding.Pick(n, len(r.next))-1] {
			r.names = append(r.names, n)
		}
	}
	return r
}

// note adds a line to the log of the schedule.
func (r *reshard) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

// use acquires and uses locks until ctx ends. It reports a second holder.
func (r *reshard) use(ctx context.Context, who string, l *redlock.Locker, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, uint64(len(who))))
	for ctx.Err() == nil {
		name := r.names[rnd.IntN(len(r.names))]
		k, err := l.Lock(ctx, name, redlock.WithWaitLimit(time.Duration(1+rnd.IntN(4000))*time.Millisecond))
		if err != nil {
			wait(ctx, k, time.Duration(1+rnd.IntN(1000))*time.Millisecond)
			continue
		}
		r.mu.Lock()
		if other := r.holder[name]; other != "" {
			r.Errorf("two holders of %q: %s and %s", name, other, who)
		}
		r.holder[name] = who
		r.counts[who]++
		r.mu.Unlock()
		r.note("%s holds %s", who, name)
		wait(ctx, k, time.Duration(rnd.IntN(1+rnd.IntN(25_000)))*time.Millisecond)
		r.mu.Lock()
		r.holder[name] = ""
		r.mu.Unlock()
		r.note("%s has held %s: %v", who, name, k.Err())
		_ = k.Unlock(context.WithoutCancel(ctx))
	}
}

// wait waits for d, or until ctx ends or k is lost; k may be nil.
func wait(ctx context.Context, k *redlock.Lock, d time.Duration) {
	var lost <-chan struct{}
	if k != nil {
		lost = k.Done()
	}
	select {
	case <-ctx.Done():
	case <-lost:
	case <-time.After(d):
	}
}

// leave makes the masters of the third set leftovers of a first start with the wrong shards, of a client that reached
// only this set.
func (r *reshard) leave() {
	l := r.shards(r.next...)
	for _, set := range []int{0, 1} {
		r.every(func(m *memory.Master) { m.Stop() }, set)
	}
	after(10 * time.Second)
	_ = l.Close()
	for _, set := range []int{0, 1} {
		r.every(restart, set)
	}
}

// at calls f after d.
func (r *reshard) at(tasks *sync.WaitGroup, d time.Duration, f func()) {
	tasks.Go(func() {
		<-time.After(d)
		f()
	})
}

// between returns a duration between a and b seconds.
func (r *reshard) between(a, b int) time.Duration {
	return time.Duration(1000*a+r.rnd.IntN(1000*(b-a)))*time.Millisecond + time.Duration(r.rnd.IntN(1000))
}

// run runs the schedule.
func (r *reshard) run(seed uint64) {
	if slices.Contains(r.next, 2) && !slices.Contains(r.old, 2) && r.rnd.IntN(3) == 0 {
		r.leave()
	}
	x := r.outdated.locker(r.shardedCluster, r.old...)
	r.must(admin.Of(x).Admit(r.Context()))
	// The last master of an old set may be replaced by a copy with its old record: a minority of its shard.
	copied := r.sets[r.old[r.rnd.IntN(len(r.old))]].Master(2)
	record, _ := copied.Get("redlock:admission")
	after(5 * time.Second)
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	var tasks sync.WaitGroup
	quiet := r.rnd.IntN(2) == 0 // as documented, the client is stopped; otherwise it still uses its locks
	done := make(chan struct{}) // closed when the records have been replaced
	if r.rnd.IntN(2) == 0 {
		r.at(&tasks, r.between(60, 150), func() {
			select {
			case <-done:
			case <-ctx.Done():
				return
			}
			r.note("%s restarts with its old record", copied.Addr())
			copied.Restart(false)
			copied.Set("redlock:admission", record)
		})
	}
	first, ended := context.WithCancel(ctx)
	tasks.Go(func() { r.use(first, "old", x, seed) })
	operates := r.between(5, 60)
	resumes := r.between(0, 60)
	cutAt, backAt := r.between(0, 70), r.between(60, 150)
	cut := r.rnd.Perm(3)[:r.rnd.IntN(4)]
	r.at(&tasks, cutAt, func() {
		for _, set := range cut {
			r.note("the old client is cut off from set %d", set)
			r.outdated.sever(set)
		}
	})
	for _, set := range cut {
		back := backAt
		if r.rnd.IntN(2) == 0 {
			back = r.between(60, 200)
		}
		r.at(&tasks, back, func() {
			r.note("the old client reaches set %d", set)
			r.outdated.join(set)
		})
	}
	lose := r.rnd.IntN(3) // one set restarts empty, at any time
	for n := range 1 + r.rnd.IntN(2) {
		d := r.between(75*n, 75*n+70)
		whole := r.rnd.IntN(4) > 0
		r.at(&tasks, d, func() {
			r.note("set %d restarts empty; all masters: %v", lose, whole)
			if whole {
				r.every(restart, lose)
			} else {
				restart(r.sets[lose].Master(1))
			}
		})
	}
	tasks.Go(func() {
		wait(ctx, nil, operates)
		if quiet {
			ended()
			wait(ctx, nil, 40*time.Second) // the client's locks have ended
		}
		y := r.shards(r.next...)
		for {
			before := r.shards(r.old...)
			within, cancel := context.WithTimeout(ctx, 20*time.Second)
			err := clients.SetOf(y).Replaces(within, clients.SetOf(before))
			cancel()
			_ = before.Close()
			r.note("the operator replaces the records: %v", err)
			if err == nil {
				break
			}
			if wait(ctx, nil, time.Second); ctx.Err() != nil {
				return
			}
		}
		close(done)
		if quiet {
			within, cancel := context.WithTimeout(ctx, time.Second)
			r.note("the operator admits the masters: %v", admin.Of(y).Admit(within))
			cancel()
			tasks.Go(func() {
				wait(ctx, nil, resumes)
				r.use(ctx, "old", x, seed+1)
			})
		}
		r.use(ctx, "new", y, seed+2)
	})
	after(4 * time.Minute)
	stop()
	ended()
	tasks.Wait()
}

// H160: while the number of shards changes, a client with the old number may be cut off from any shards and come back
// at any time, the masters of one shard may restart empty, and unused masters may have records of a start with another
// number: no name ever has two holders.
func TestChangesOfShardsNeverMakeTwoHolders(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(rounds(300, 6)) {
		shardedClusters(t, 3, func(w *shardedCluster) {
			r := newReshard(w, rand.New(rand.NewPCG(seed, 19)))
			r.run(seed)
			for who, n := range r.counts {
				counts[who] += n
			}
			if t.Failed() {
				for _, line := range r.log {
					t.Log(line)
				}
				t.Logf("seed %d: from the sets %v to %v", seed, r.old, r.next)
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("locks: %v", counts)
	if long.Enabled() && (counts["old"] == 0 || counts["new"] == 0) {
		t.Errorf("too few locks: %v", counts)
	}
}
