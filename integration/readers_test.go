package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// Operations on a readers-writer lock.
type (
	share struct {
		op   string // shareRead, shareWrite, shareEnd, shareDown
		hold int64
	}
	// shared is the state of the model: the writer (0 for none), the readers, the largest token of any writer, and the
	// largest token of any client.
	shared struct {
		writer        int64
		readers       []int64 // sorted
		written, most int64
	}
)

const (
	shareRead  = "read"
	shareWrite = "write"
	shareEnd   = "end"
	shareDown  = "downgrade" // the writer becomes a reader, with a new token
)

// sharedModel is a readers-writer lock. A writer holds the lock alone, and its token is larger than all earlier
// tokens. A reader's token is larger than those of all earlier writers.
var sharedModel = porcupine.Model{
	Init: func() any { return shared{} },
	Step: func(was, in, out any) (bool, any) {
		s, i, token := was.(shared), in.(share), out.(output).token
		s.readers = slices.Clone(s.readers)
		at, reads := slices.BinarySearch(s.readers, i.hold)
		switch i.op {
		case shareRead:
			s.readers = slices.Insert(s.readers, at, i.hold)
			ok := s.writer == 0 && token > s.written
			s.most = max(s.most, token)
			return ok, s
		case shareWrite:
			ok := s.writer == 0 && len(s.readers) == 0 && token > s.most
			s.writer, s.written, s.most = i.hold, token, token
			return ok, s
		case shareDown:
			ok := s.writer == i.hold && token > s.most
			s.writer, s.readers, s.most = 0, []int64{i.hold}, token
			return ok, s
		}
		if reads {
			s.readers = slices.Delete(s.readers, at, at+1)
			return true, s
		}
		ok := s.writer == i.hold
		s.writer = 0
		return ok, s
	},
	Equal: func(a, b any) bool {
		s, o := a.(shared), b.(shared)
		return s.writer == o.writer && slices.Equal(s.readers, o.readers) && s.written == o.written && s.most == o.most
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprint(in, out) },
}

// explained returns an error if no order of the operations explains their results.
func explained(ops []porcupine.Operation, bound time.Duration) error {
	switch result := porcupine.CheckOperationsTimeout(sharedModel, ops, bound); result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("the model check of %d operations has not ended within %v", len(ops), bound)
	default:
		return fmt.Errorf("no order of the %d operations explains what the callers saw", len(ops))
	}
}

// did returns an operation of a hold.
func did(op string, hold, token, call, ret int64) porcupine.Operation {
	return porcupine.Operation{Input: share{op, hold}, Output: output{token}, Call: call, Return: ret}
}

// The model accepts valid histories, and rejects invalid ones.
func TestReadersModelFindsViolations(t *testing.T) {
	for name, c := range map[string]struct {
		ops  []porcupine.Operation
		good bool
	}{
		"readers together, then a writer": {[]porcupine.Operation{did(shareRead, 1, 5, 0, 10), did(shareRead, 2, 4, 0, 12),
			did(shareEnd, 1, 0, 20, 22), did(shareEnd, 2, 0, 21, 23), did(shareWrite, 3, 6, 1, 30)}, true},
		"a reader during a downgrade": {[]porcupine.Operation{did(shareWrite, 1, 5, 0, 10), did(shareDown, 1, 7, 20, 22),
			did(shareRead, 2, 6, 12, 25)}, true},
		"a writer together with a reader": {[]porcupine.Operation{did(shareRead, 1, 5, 0, 10), did(shareWrite, 2, 6, 11, 12),
			did(shareEnd, 1, 0, 20, 22)}, false},
		"a reader together with a writer": {[]porcupine.Operation{did(shareWrite, 1, 5, 0, 10), did(shareRead, 2, 6, 11, 12),
			did(shareEnd, 1, 0, 20, 22)}, false},
		"two writers": {[]porcupine.Operation{did(shareWrite, 1, 5, 0, 10), did(shareWrite, 2, 6, 11, 12),
			did(shareEnd, 1, 0, 20, 22)}, false},
		"a writer with a reader's token": {[]porcupine.Operation{did(shareRead, 1, 5, 0, 10), did(shareEnd, 1, 0, 11, 12),
			did(shareWrite, 2, 5, 13, 14)}, false},
		"a reader with a writer's token": {[]porcupine.Operation{did(shareWrite, 1, 5, 0, 10), did(shareEnd, 1, 0, 11, 12),
			did(shareRead, 2, 5, 13, 14)}, false},
		"a downgrade after another writer": {[]porcupine.Operation{did(shareWrite, 1, 5, 0, 10), did(shareEnd, 1, 0, 11, 12),
			did(shareWrite, 2, 6, 13, 14), did(shareDown, 1, 7, 15, 16)}, false},
	} {
		if err := explained(c.ops, time.Minute); (err == nil) != c.good {
			t.Errorf("%s: the model returned %v", name, err)
		}
	}
}

// A reading records the operations of a test on one name.
type reading struct {
	mu  sync.Mutex
	ops []porcupine.Operation
	seq int64
}

func (r *reading) next() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	return r.seq
}

func (r *reading) put(ops ...porcupine.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, ops...)
}

// one acquires a lock, downgrades it at random, and ends it in one of several ways. The recorded end is the end of the
// hold's validity for its holder, or the start of the release if that is earlier. So the model also accepts histories
// in which other clients acquire the lock later, and does not need to know whether the release was confirmed.
func (r *reading) one(ctx context.Context, rnd *rand.Rand, s *redlock.RWLock) {
	op, take, extend := shareRead, s.RLock, rnd.IntN(4) > 0
	if rnd.IntN(3) == 0 {
		op, take = shareWrite, s.Lock
	}
	bounded, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	ttl := time.Duration(500+rnd.IntN(1500)) * time.Millisecond
	id, call := r.next(), history.Stamp()
	opts := []redlock.LockOption{redlock.WithTTL(ttl), redlock.WithExtension(extend)}
	lock, err := take(bounded, opts...)
	if err != nil {
		return
	}
	r.put(did(op, id, lock.Token(), call, history.Stamp()))
	time.Sleep(time.Duration(rnd.IntN(60)) * time.Millisecond)
	if op == shareWrite && rnd.IntN(2) == 0 {
		over := history.Until(lock)
		call := history.Stamp()
		reader, err := lock.Downgrade(bounded, opts...)
		if err != nil {
			_ = lock.Unlock(ctx)
			r.ended(id, min(call, over))
			return
		}
		r.put(did(shareDown, id, reader.Token(), call, history.Stamp()))
		lock = reader
		time.Sleep(time.Duration(rnd.IntN(60)) * time.Millisecond)
	}
	if !extend && rnd.IntN(30) == 0 { // wait until the holder notices the expiry
		<-lock.Done()
	}
	over, call := history.Until(lock), history.Stamp()
	_ = lock.Unlock(ctx)
	r.ended(id, min(call, over))
}

func (r *reading) ended(id, at int64) { r.put(did(shareEnd, id, 0, at, at)) }

// Readers and writers of four clients use five real servers. A minority of the servers is repeatedly paused, and one
// server is killed and restarted. At least one order of the operations must be valid for a readers-writer lock.
func TestHistoriesOfReadersOnRealServers(t *testing.T) {
	servers := redistest.Test(t, 5, redisproc.Config{})
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	rounds := 14
	if !long.Enabled() {
		rounds = 2
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var lockers []*redlock.Locker
	for range 4 {
		p, err := pool.Open(urls, pool.WithTimeout(200*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		l, err := redlock.New(p, redlock.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(l.Close(), p.Close()); err != nil {
				t.Error(err)
			}
		}()
		lockers = append(lockers, l)
	}
	if err := admin.Of(lockers[0]).Admit(ctx); err != nil {
		t.Fatal(err)
	}
	working, stop := context.WithCancel(ctx)
	r := &reading{}
	var workers sync.WaitGroup
	for i := range 12 {
		workers.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			for working.Err() == nil {
				r.one(ctx, rnd, lockers[i%len(lockers)].RWLock("prices"))
			}
		})
	}
	disturb(ctx, t, servers, rounds)
	stop()
	workers.Wait()
	ops := make(map[string]int)
	for _, o := range r.ops {
		ops[o.Input.(share).op]++
	}
	t.Logf("numbers of operations: %v", ops)
	if few := 2 * rounds; ops[shareRead] < few || ops[shareWrite] < few/2 || ops[shareDown] < few/10 {
		t.Error("too few operations for a meaningful check")
	}
	if err := explained(r.ops, 2*time.Minute); err != nil {
		t.Error(err)
	}
}

// disturb pauses masters, up to two at a time. One time it also kills a master, which restarts empty and in quarantine.
func disturb(ctx context.Context, t *testing.T, servers []*redisproc.Server, rounds int) {
	t.Helper()
	for i := range rounds {
		a, b := servers[1+i%4], servers[1+(i+1)%4]
		time.Sleep(400 * time.Millisecond)
		if i == rounds/2 {
			if err := errors.Join(servers[0].Kill(), servers[0].Restart(ctx)); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Pause(); err != nil {
			t.Fatal(err)
		}
		if i < rounds/2 { // later the killed master does not vote, so only one other is paused
			if err := b.Pause(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(300 * time.Millisecond)
		if err := a.Resume(); err != nil {
			t.Fatal(err)
		}
		if i < rounds/2 {
			if err := b.Resume(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
