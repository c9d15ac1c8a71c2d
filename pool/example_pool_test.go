package pool_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// inMemory makes the pool of an example, over masters in memory. A program makes its own by Dial.
func inMemory(n int) (p *pool.Pool, masters *redlocktest.Masters, done func()) {
	masters = redlocktest.New(n)
	p, err := masters.Pool()
	if err != nil {
		panic(err)
	}
	return p, masters, func() {
		_ = p.Close()
		masters.Close()
	}
}

// Masters have numbers, from 0, and names without credentials.
func ExamplePool() {
	p, _, done := inMemory(3)
	defer done()

	for i := range p.N() {
		fmt.Println(i, p.Addr(i), p.Timeout(i))
	}
	number, ok := p.Find("master-3:6379")
	fmt.Println(number, ok)
	// Output:
	// 0 master-1:6379 500ms
	// 1 master-2:6379 500ms
	// 2 master-3:6379 500ms
	// 2 true
}

// Watch tells when a master is up, and when it is down and why.
func ExamplePool_Watch() {
	p, masters, done := inMemory(1)
	defer done()

	events := make(chan pool.Event, 100) // Watch may call before it returns
	stop := p.Watch(func(e pool.Event) { events <- e })
	up := <-events
	fmt.Println(p.Addr(up.Master), up.Session > 0, up.Info.Role)
	masters.Master(0).Stop()
	down := <-events
	fmt.Println(p.Addr(down.Master), errors.Is(down.Err, pool.ErrDown))
	stop()
	// Output:
	// master-1:6379 true master
	// master-1:6379 true
}

// Check tells what is wrong with the masters and what to do about it, before the first lock.
func ExamplePool_Check() {
	p, masters, done := inMemory(3)
	defer done()
	masters.Master(2).Stop()

	findings, err := p.Check(context.Background(), pool.CheckOptions{})
	for _, f := range findings {
		if f.About == "connection" {
			fmt.Println(f.Master, f.Severity) // f.String() says it in a line
		}
	}
	fmt.Println(err)
	// Output:
	// master-3:6379 failure
	// <nil>
}

func ExamplePool_Close() {
	p, masters, done := inMemory(3)
	defer done()

	fmt.Println(p.Close())
	_, err := p.Add(pool.URL(masters.URLs()[0]))
	fmt.Println(errors.Is(err, pool.ErrClosed))
	// Output:
	// <nil>
	// true
}

// Add makes masters known while the pool is used; redlock's ChangeMasters does so.
func ExamplePool_Add() {
	p, _, done := inMemory(3)
	defer done()

	numbers, err := p.Add(pool.URL("redis://master-2"), pool.URL("redis://10.0.0.9"))
	fmt.Println(numbers, err) // the first one was known
	// Output:
	// [1 3] <nil>
}

// A Locker counts itself as a user of each of its masters. When the last user is gone a master may be retired.
func ExamplePool_Retain() {
	p, masters, done := inMemory(3)
	defer done()

	p.Retain(2)
	p.Release(2, true)
	_, known := p.Find(masters.Master(2).Addr())
	fmt.Println(known)
	// Output:
	// false
}

func ExamplePool_Release() {
	p, _, done := inMemory(3)
	defer done()

	p.Retain(0)
	p.Retain(0)
	p.Release(0, true) // there is another user
	_, known := p.Find(p.Addr(0))
	fmt.Println(known)
	// Output:
	// true
}

// An answer is the Receiver of an example.
type answer chan error

// Reply implements pool.Receiver.
func (a answer) Reply(_ int, _ any, err error) { a <- err }

// Send is what package redlock is made of: one script to one master. Programs that use redlock do not need it.
func ExamplePool_Send() {
	p, _, done := inMemory(1)
	defer done()
	up := make(chan bool, 1)
	defer p.Watch(func(e pool.Event) {
		if e.Session > 0 {
			up <- true
		}
	})()
	<-up

	keys := scripts.Prefix("redlock").Keys("orders:42")
	reply := make(answer, 1)
	err := p.Send(0, scripts.NewEncoder("redlock", 0).Inspect(&keys), pool.Stamp{}, reply)
	fmt.Println(err, <-reply)
	// Output:
	// <nil> <nil>
}

// What could not be delivered is owed, and is delivered first when the master is back.
func ExamplePool_owed() {
	p, masters, done := inMemory(1)
	defer done()
	masters.Master(0).Stop()

	keys := scripts.Prefix("redlock").Keys("orders:42")
	encoder := scripts.NewEncoder("redlock", 0)
	booked := p.Owe(0, pool.OwedRelease{
		Name: "orders:42", Grants: []string{"a grant"}, Ballot: 1,
		CallFunc: func(grants []string, ballot int64) *scripts.Call {
			return encoder.Release(&keys, scripts.Ending{Grants: grants, Ballot: ballot})
		},
	})
	fmt.Println(booked, p.Owed(0))
	// Output:
	// true 1
}

// A hearer is the Listener of an example.
type hearer struct{ stands chan int }

// Message implements pool.Listener.
func (h hearer) Message(master int, channel, payload string) {}

// Gap implements pool.Listener.
func (h hearer) Gap(master int) { h.stands <- master }

func ExamplePool_Subscribe() {
	p, _, done := inMemory(1)
	defer done()

	h := hearer{make(chan int, 10)}
	s := p.Subscribe("redlock:example", h)
	defer s.Close()
	fmt.Println("stands on master", <-h.stands)
	// Output:
	// stands on master 0
}

func ExampleSubscription() {
	p, _, done := inMemory(1)
	defer done()

	h := hearer{make(chan int, 10)}
	s := p.Subscribe("redlock:example", h)
	<-h.stands
	fmt.Printf("%b %v\n", s.StandingOn(), s.Err(0)) // bit 0 is master 0
	s.Close()
	fmt.Println(s.StandingOn(), errors.Is(s.Err(0), pool.ErrClosed))
	// Output:
	// 1 <nil>
	// 0 true
}

// The identity of a server changes when it may have lost locks.
func ExampleInfo() {
	before := pool.Info{RunID: "c0ffee", ReplID2: "0000", SecondOffset: -1}
	restarted := pool.Info{RunID: "beef", ReplID2: "0000", SecondOffset: -1}
	fmt.Println(before.Identity())
	fmt.Println(before.Identity() == restarted.Identity())
	// Output:
	// c0ffee/0000/-1
	// false
}

func ExampleFinding() {
	f := pool.Finding{
		Master: "10.0.0.1:6379", Severity: pool.Failure, About: "eviction",
		What: "it may evict locks", Endangers: "its locks", Do: "noeviction",
	}
	fmt.Println(f)
	// Output:
	// 10.0.0.1:6379: failure: eviction: it may evict locks. It endangers: its locks. What to do: noeviction.
}

func ExampleSeverity() {
	for _, s := range []pool.Severity{pool.Notice, pool.Warning, pool.Failure} {
		fmt.Println(s)
	}
	// Output:
	// notice
	// warning
	// failure
}

// An Error says which master, and whether the call may have had an effect all the same.
func ExampleError() {
	err := error(&pool.Error{Addr: "10.0.0.3:6379", Op: "acquire", Err: pool.ErrTimeout, Unknown: true})
	var failed *pool.Error
	if errors.As(err, &failed) {
		fmt.Println(failed.Addr, failed.Op, failed.Unknown, errors.Is(err, pool.ErrTimeout))
	}
	// Output:
	// 10.0.0.3:6379 acquire true true
}

func ExampleAnswered() {
	full := &pool.Error{Addr: "10.0.0.3:6379", Op: "acquire", Err: redis.Error("OOM command not allowed")}
	gone := &pool.Error{Addr: "10.0.0.3:6379", Op: "acquire", Err: pool.ErrDown}
	fmt.Println(pool.Answered(full), pool.Answered(gone))
	// Output:
	// true false
}

func ExampleTransient() {
	for _, text := range []string{"OOM command not allowed", "NOPERM this user has no permissions"} {
		fmt.Println(pool.Transient(&pool.Error{Op: "acquire", Err: redis.Error(text)}))
	}
	// Output:
	// true
	// false
}

func ExampleIsWrongType() {
	fmt.Println(pool.IsWrongType(&pool.Error{Op: "acquire", Err: redis.Error("WRONGTYPE Operation against a key")}))
	// Output:
	// true
}

func ExampleNotLoaded() {
	fmt.Println(pool.NotLoaded(&pool.Error{Op: "acquire", Err: redis.Error("NOSCRIPT No matching script")}))
	// Output:
	// true
}
