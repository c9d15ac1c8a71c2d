package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// A sight is what one master shows at a moment.
type sight struct {
	state string        // one of the states below
	who   string        // the program that has a lease on the master; "" for none
	left  time.Duration // remaining time of that lease, by the master's clock
}

// States of a sight.
const (
	votes      = "votes"
	quarantine = "quarantine"
	killed     = "killed"
	hangs      = "hangs"
)

// A frame is what a watcher sees at a moment.
type frame struct {
	at      time.Duration // since the start of the watcher
	masters []sight
	who     string        // the program that holds the lock; "" for none
	left    time.Duration // remaining validity of the lock
}

// A watcher looks at the keys of one name on each master, over connections of its own.
type watcher struct {
	began  time.Time
	locker *redlock.Locker // for the states of the masters
	name   string

	mu     sync.Mutex
	sights []sight
	locks  map[string]*redlock.Lock // by the program that acquired it
}

// watch looks at the masters every 20 ms until ctx ends, and calls each with what it sees.
func watch(ctx context.Context, w *watcher, urls []string, each func(frame)) (wait func()) {
	w.sights, w.locks = make([]sight, len(urls)), make(map[string]*redlock.Lock)
	var all sync.WaitGroup
	for i, u := range urls {
		all.Go(func() { w.follow(ctx, i, u) })
	}
	all.Go(func() {
		for ctx.Err() == nil {
			each(w.now())
			pause(ctx, 20*time.Millisecond)
		}
	})
	return all.Wait
}

// holds tells the watcher which program has acquired a lock.
func (w *watcher) holds(who string, lock *redlock.Lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.locks[who] = lock
}

func (w *watcher) now() frame {
	states := admin.Of(w.locker).Masters()
	w.mu.Lock()
	defer w.mu.Unlock()
	f := frame{at: time.Since(w.began), masters: append([]sight(nil), w.sights...)}
	for i := range f.masters {
		if m := &f.masters[i]; m.state == votes && states[i].State == "quarantine" {
			m.state = quarantine
		}
	}
	for who, lock := range w.locks {
		if left := lock.Remaining(); left > 0 && lock.Err() == nil {
			f.who, f.left = who, left
		}
	}
	return f
}

// follow looks at one master.
func (w *watcher) follow(ctx context.Context, i int, url string) {
	const patience = 150 * time.Millisecond
	for ctx.Err() == nil {
		c, err := redis.DialURLContext(ctx, url, redis.DialConnectTimeout(patience), redis.DialReadTimeout(patience))
		for err == nil && ctx.Err() == nil {
			var seen sight
			if seen, err = w.look(c); err == nil {
				w.set(i, seen)
				pause(ctx, 20*time.Millisecond)
			}
		}
		if c != nil {
			_ = c.Close()
		}
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			w.set(i, sight{state: hangs})
		} else if err != nil {
			w.set(i, sight{state: killed})
		}
		pause(ctx, 20*time.Millisecond)
	}
}

func (w *watcher) set(i int, s sight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sights[i] = s
}

// look reads the hash of the name, which docs/protocol.md describes: a field with colons is the id of a lease, and the
// second word of its value is the token. The hash outlives the lease by 75 s.
func (w *watcher) look(c redis.Conn) (sight, error) {
	const key, kept = "redlock:{%}", 75 * time.Second
	name := strings.ReplaceAll(key, "%", w.name)
	fields, err := redis.StringMap(c.Do("HGETALL", name))
	if err != nil {
		return sight{}, err
	}
	ms, err := redis.Int64(c.Do("PTTL", name))
	if err != nil {
		return sight{}, err
	}
	left := time.Duration(ms)*time.Millisecond - kept
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, lease := range fields {
		words := strings.Fields(lease)
		if !strings.Contains(id, ":") || len(words) < 2 || left <= 0 {
			continue
		}
		for who, lock := range w.locks {
			if words[1] == strconv.FormatInt(lock.Token(), 10) {
				return sight{votes, who, left}, nil
			}
		}
	}
	return sight{state: votes}, nil
}
