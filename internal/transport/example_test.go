package transport_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

// inMemory returns a transport to masters in memory.
func inMemory(n int) (p *transport.Transport, masters *memory.Masters, done func()) {
	masters = memory.New(n)
	made, err := masters.Pool()
	if err != nil {
		panic(err)
	}
	p = made.Transport()
	return p, masters, func() {
		_ = p.Close()
		masters.Close()
	}
}

// Masters have numbers, from 0, and names without credentials.
func ExampleTransport() {
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

// Watch reports when a master comes up, and when and why it goes down.
func ExampleTransport_Watch() {
	p, masters, done := inMemory(1)
	defer done()

	events := make(chan transport.Event, 100) // Watch may call before it returns
	stop := p.Watch(func(e transport.Event) { events <- e })
	up := <-events
	fmt.Println(p.Addr(up.Master), up.Session > 0, up.Info.Role)
	masters.Master(0).Stop()
	down := <-events
	fmt.Println(p.Addr(down.Master), errors.Is(down.Err, transport.ErrDown))
	stop()
	// Output:
	// master-1:6379 true master
	// master-1:6379 true
}

// Check reports problems of the masters and how to fix them, before the first lock.
func ExampleTransport_Check() {
	p, masters, done := inMemory(3)
	defer done()
	masters.Master(2).Stop()

	findings, err := p.Check(context.Background(), transport.CheckOptions{})
	for _, f := range findings {
		if f.About == "connection" {
			fmt.Println(f.Master, f.Severity) // f.String() returns the whole finding on one line
		}
	}
	fmt.Println(err)
	// Output:
	// master-3:6379 failure
	// <nil>
}

func ExampleTransport_Close() {
	p, masters, done := inMemory(3)
	defer done()

	fmt.Println(p.Close())
	_, err := p.Add(transport.URL(masters.URLs()[0]))
	fmt.Println(errors.Is(err, transport.ErrClosed))
	// Output:
	// <nil>
	// true
}

// Add adds masters to a pool that is in use, as redlock's Reconfigure does.
func ExampleTransport_Add() {
	p, _, done := inMemory(3)
	defer done()

	numbers, err := p.Add(transport.URL("redis://master-2"), transport.URL("redis://10.0.0.9"))
	fmt.Println(numbers, err) // the first one was already known
	// Output:
	// [1 3] <nil>
}

// A Locker holds a reference to each of its masters. A master can be retired with its last reference.
func ExampleTransport_Retain() {
	p, masters, done := inMemory(3)
	defer done()

	p.Retain(2)
	p.Release(2, true)
	_, known := p.Find(masters.Master(2).Addr())
	fmt.Println(known)
	// Output:
	// false
}

func ExampleTransport_Release() {
	p, _, done := inMemory(3)
	defer done()

	p.Retain(0)
	p.Retain(0)
	p.Release(0, true) // not retired: another user remains
	_, known := p.Find(p.Addr(0))
	fmt.Println(known)
	// Output:
	// true
}

// An answer is the Receiver of the examples.
type answer chan error

// Reply implements transport.Receiver.
func (a answer) Reply(_ int, _ any, err error) { a <- err }

// Send sends one script to one master.
func ExampleTransport_Send() {
	p, _, done := inMemory(1)
	defer done()
	up := make(chan bool, 1)
	defer p.Watch(func(e transport.Event) {
		if e.Session > 0 {
			up <- true
		}
	})()
	<-up

	keys := scripts.Prefix("redlock").Keys("orders:42")
	reply := make(answer, 1)
	err := p.Send(0, scripts.NewEncoder("redlock", 0).Inspect(&keys), transport.Stamp{}, reply)
	fmt.Println(err, <-reply)
	// Output:
	// <nil> <nil>
}

// Releases that could not be delivered are pending, and are sent first when the master is back.
func ExampleTransport_AddPending() {
	p, masters, done := inMemory(1)
	defer done()
	masters.Master(0).Stop()

	keys := scripts.Prefix("redlock").Keys("orders:42")
	encoder := scripts.NewEncoder("redlock", 0)
	accepted := p.AddPending(0, transport.PendingRelease{
		Name: "orders:42", Grants: []string{"a grant"}, Ballot: 1,
		CallFunc: func(grants []string, ballot int64) *scripts.Call {
			return encoder.Release(&keys, scripts.Ending{Grants: grants, Ballot: ballot})
		},
	})
	fmt.Println(accepted, p.Pending(0))
	// Output:
	// true 1
}

// A hearer is the Listener of the examples.
type hearer struct{ stands chan int }

// Message implements transport.Listener.
func (h hearer) Message(master int, channel, payload string) {}

// Resubscribed implements transport.Listener.
func (h hearer) Resubscribed(master int) { h.stands <- master }

func ExampleTransport_Subscribe() {
	p, _, done := inMemory(1)
	defer done()

	h := hearer{make(chan int, 10)}
	s := p.Subscribe("redlock:example", h)
	defer s.Close()
	fmt.Println("is on master", <-h.stands)
	// Output:
	// is on master 0
}

func ExampleSubscription() {
	p, _, done := inMemory(1)
	defer done()

	h := hearer{make(chan int, 10)}
	s := p.Subscribe("redlock:example", h)
	<-h.stands
	fmt.Printf("%b %v\n", s.Confirmed(), s.Err(0)) // bit 0 is master 0
	s.Close()
	fmt.Println(s.Confirmed(), errors.Is(s.Err(0), transport.ErrClosed))
	// Output:
	// 1 <nil>
	// 0 true
}

// The identity of a server changes when it may have lost locks.
func ExampleInfo() {
	before := transport.Info{RunID: "c0ffee", ReplID2: "0000", SecondOffset: -1}
	restarted := transport.Info{RunID: "beef", ReplID2: "0000", SecondOffset: -1}
	fmt.Println(before.Identity())
	fmt.Println(before.Identity() == restarted.Identity())
	// Output:
	// c0ffee/0000/-1
	// false
}

// An Error names the master, and reports whether the call may have had an effect despite the error.
func ExampleError() {
	err := error(&transport.Error{Addr: "10.0.0.3:6379", Op: "acquire", Err: transport.ErrTimeout, Unknown: true})
	var failed *transport.Error
	if errors.As(err, &failed) {
		fmt.Println(failed.Addr, failed.Op, failed.Unknown, errors.Is(err, transport.ErrTimeout))
	}
	// Output:
	// 10.0.0.3:6379 acquire true true
}

func ExampleAnswered() {
	full := &transport.Error{Addr: "10.0.0.3:6379", Op: "acquire", Err: redis.Error("OOM command not allowed")}
	gone := &transport.Error{Addr: "10.0.0.3:6379", Op: "acquire", Err: transport.ErrDown}
	fmt.Println(transport.Answered(full), transport.Answered(gone))
	// Output:
	// true false
}

func ExampleTransient() {
	for _, text := range []string{"OOM command not allowed", "NOPERM this user has no permissions"} {
		fmt.Println(transport.Transient(&transport.Error{Op: "acquire", Err: redis.Error(text)}))
	}
	// Output:
	// true
	// false
}

func ExampleIsWrongType() {
	err := &transport.Error{Op: "acquire", Err: redis.Error("WRONGTYPE Operation against a key")}
	fmt.Println(transport.IsWrongType(err))
	// Output:
	// true
}

func ExampleNotLoaded() {
	fmt.Println(transport.NotLoaded(&transport.Error{Op: "acquire", Err: redis.Error("NOSCRIPT No matching script")}))
	// Output:
	// true
}

// FailsOver reports the masters that lose their vote for a while when one of their replicas is promoted.
func ExampleTransport_FailsOver() {
	p, err := transport.Open([]string{"redis+sentinel://10.0.0.3,10.0.0.4,10.0.0.5/mymaster"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.FailsOver(0))
	// Output:
	// true
}

// The tag of a bucket puts its keys into one hash slot.
func ExampleBucket() {
	fmt.Println(transport.Bucket{Number: 17, Of: 64}.Tag())
	// Output:
	// {17}
}

// Buckets shows whether a program needs a pool for each bucket.
func ExampleMaster_Buckets() {
	cluster, plain := transport.URL("redis+cluster://10.0.0.1:7000?buckets=64"), transport.URL("redis://10.0.0.1")
	fmt.Println(cluster.Buckets(), plain.Buckets())
	// Output:
	// 64 0
}

// A pool of plain masters belongs to no bucket.
func ExampleTransport_Bucket() {
	p, err := transport.Open([]string{"redis://10.0.0.1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.Bucket().Of)
	// Output:
	// 0
}

// A Locker uses the clock of its transport.
func ExampleTransport_Clock() {
	masters := memory.New(1)
	defer masters.Close()
	p, err := masters.Pool()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.Transport().Clock().Now() == (clock.Instant{}))
	// Output:
	// false
}

// An option of this package is one of package pool. In a testing/synctest bubble the instants of the pool follow the
// bubble's clock.
func ExampleWithClock() {
	masters := memory.New(3)
	defer masters.Close()
	p, err := pool.Open(masters.URLs(), pool.WithDialer(masters.Dial), transport.WithClock(clock.Runtime()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.N(), "masters")
	// Output:
	// 3 masters
}
