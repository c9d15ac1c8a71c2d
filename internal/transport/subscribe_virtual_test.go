package transport

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/transport/feed"
)

// An ear is a Listener that records all calls of its methods.
type ear struct {
	mu       sync.Mutex
	renewed  map[int]int
	messages []string // "master payload"
	onCall   func()
}

func newEar() *ear { return &ear{renewed: map[int]int{}} }

func (e *ear) Message(master int, payload string) {
	e.mu.Lock()
	e.messages = append(e.messages, fmt.Sprint(master, " ", payload))
	e.mu.Unlock()
	if e.onCall != nil {
		e.onCall()
	}
}

func (e *ear) Resubscribed(master int) {
	e.mu.Lock()
	e.renewed[master]++
	e.mu.Unlock()
	if e.onCall != nil {
		e.onCall()
	}
}

// heard returns the number of messages, and the number of renewed subscriptions on all masters.
func (e *ear) heard() (messages, renewed int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range e.renewed {
		renewed += n
	}
	return len(e.messages), renewed
}

func (e *ear) want(t *testing.T, messages, renewed int) {
	t.Helper()
	if number, g := e.heard(); number != messages || g != renewed {
		t.Errorf("there were %d messages and %d renewals, want %d and %d", number, g, messages, renewed)
	}
}

// ears lists fakes that are masters of a Transport, for tests of subscriptions.
type ears []*fake

func (ms ears) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var i int
	if _, err := fmt.Sscanf(addr, "m%d:", &i); err != nil {
		return nil, err
	}
	return ms[i].dial(ctx, network, addr)
}

func (ms ears) urls() (list []string) {
	for i := range ms {
		list = append(list, fmt.Sprintf("redis://m%d", i))
	}
	return list
}

func newEars(n int) ears {
	ms := make(ears, n)
	for i := range ms {
		ms[i] = newFake(fmt.Sprint("a", i))
	}
	return ms
}

func channel(name string) string { return "redlock:inbox:" + name }

// publish makes every master publish a message on the channel of a name.
func publish(ms ears, name string) {
	for _, m := range ms {
		m.publish(channel(name), "hint")
	}
	synctest.Wait()
}

// virtual runs f in a bubble with n fake masters and a Transport that is connected to all of them.
func virtual(t *testing.T, n int, f func(t *testing.T, ms ears, p *Transport), opts ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ms := newEars(n)
		p := open(t, ms.urls(), append([]Option{WithDialer(ms.dial)}, opts...)...)
		synctest.Wait()
		f(t, ms, p)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		for _, m := range ms {
			m.resume()
		}
		settle(10 * time.Second) // until the goroutines of the fakes have ended
	})
}

// confirmedCount returns the number of masters on which the subscription is active.
func confirmedCount(s *feed.Subscription) int { return bits.OnesCount64(s.Confirmed()) }

func confirmed(t *testing.T, s *feed.Subscription, want int) {
	t.Helper()
	synctest.Wait()
	if n := confirmedCount(s); n != want {
		t.Errorf("the subscription is active on %d masters, want %d", n, want)
	}
}

func connections(t *testing.T, ms ears, want int) {
	t.Helper()
	for i, m := range ms {
		if n := m.connections(); n != want {
			t.Errorf("master %d has %d connections, want %d", i, n, want)
		}
	}
}

// H40: Resubscribed is called when a subscription becomes active on a master. Every message that this master publishes
// from then on arrives.
func TestMessagesArriveOnceSubscribed(t *testing.T) {
	virtual(t, 5, func(t *testing.T, ms ears, p *Transport) {
		connections(t, ms, 1)
		e, other := newEar(), newEar()
		s := p.Subscribe(channel("a"), e)
		confirmed(t, s, 5)
		e.want(t, 0, 5)
		publish(ms, "a")
		publish(ms, "b")
		e.want(t, 5, 5)
		connections(t, ms, 2)
		s.Close()
		late := p.Subscribe(channel("a"), other)
		s.Close() // does not close the other one
		confirmed(t, s, 0)
		confirmed(t, late, 5)
		publish(ms, "a")
		e.want(t, 5, 5)
		other.want(t, 5, 5)
		late.Close()
	})
}

// The connection is opened when it is first needed. A heartbeat that finds no subscription closes it, and its
// goroutines end. It has not failed, so it is opened again without a pause, even if pauses are longer than the
// connections are used.
func TestUnusedConnectionIsClosed(t *testing.T) {
	virtual(t, 3, func(t *testing.T, ms ears, p *Transport) {
		settle(time.Minute)
		connections(t, ms, 1)
		for range 3 {
			e := newEar()
			s := p.Subscribe(channel("a"), e)
			confirmed(t, s, 3)
			settle(DefaultHeartbeat * 3 / 2)
			connections(t, ms, 2)
			s.Close()
			settle(DefaultHeartbeat / 3)
			s = p.Subscribe(channel("b"), e)
			confirmed(t, s, 3)
			s.Close()
			settle(DefaultHeartbeat/6 - time.Millisecond)
			connections(t, ms, 2)
			settle(2 * time.Millisecond)
			connections(t, ms, 1)
			e.want(t, 0, 6)
		}
	}, WithRedial(DefaultRedialMin, time.Hour))
}

// H31, H36: the heartbeat detects a hung master. The hung master delays no client, and is redialled when it answers
// again.
func TestHungMasterIsRedialled(t *testing.T) {
	virtual(t, 3, func(t *testing.T, ms ears, p *Transport) {
		e := newEar()
		s := p.Subscribe(channel("a"), e)
		confirmed(t, s, 3)
		ms[0].hang()
		settle(DefaultHeartbeat + DefaultTimeout + time.Millisecond)
		confirmed(t, s, 2)
		fresh := newEar()
		other := p.Subscribe(channel("b"), fresh)
		confirmed(t, other, 2)
		publish(ms, "b")
		fresh.want(t, 2, 2)
		other.Close()
		ms[0].resume()
		settle(3 * time.Second)
		confirmed(t, s, 3)
		e.want(t, 0, 4)
		s.Close()
	})
}

// If a master hangs from the start, clients can still subscribe, close subscriptions, and close the Transport.
func TestCloseJoinsWhileAMasterHangs(t *testing.T) {
	virtual(t, 3, func(t *testing.T, ms ears, p *Transport) {
		ms[2].hang()
		e := newEar()
		s := p.Subscribe(channel("a"), e)
		confirmed(t, s, 2)
		settle(100 * time.Millisecond)
		start := time.Now()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("Close took %v", took)
		}
		confirmed(t, s, 0)
		after := p.Subscribe(channel("b"), e)
		confirmed(t, after, 0)
		s.Close()
		after.Close()
		e.want(t, 0, 2)
	})
}

// While there are listeners, a master that is down is dialled with growing pauses, regardless of how often listeners
// come and go. Without listeners it is not dialled.
func TestDownMasterIsDialledWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newEars(1)
		var dials atomic.Int64
		p := open(t, ms.urls(), WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return ms.dial(ctx, network, addr)
		}))
		synctest.Wait()
		ms[0].cutAll(true)
		settle(30 * time.Second)
		dials.Store(0)
		settle(30 * time.Second)
		alone := dials.Swap(0) // dials of the connection for calls
		for range 3000 {
			s := p.Subscribe(channel("a"), newEar())
			settle(10 * time.Millisecond)
			s.Close()
		}
		if n := dials.Load() - alone; n < 20 || n > 80 {
			t.Errorf("there were %d attempts in 30 s", n)
		}
		settle(30 * time.Second)
		dials.Store(0)
		settle(30 * time.Second)
		if n := dials.Load() - alone; n > 10 {
			t.Errorf("there were %d attempts in 30 s without listeners", n)
		}
		ms[0].cutAll(false)
		settle(2 * time.Second)
		s := p.Subscribe(channel("a"), newEar())
		confirmed(t, s, 1)
		s.Close()
	})
}

// A listener may subscribe and close subscriptions while it is being called. A listener that was closed before a
// message is not called.
func TestListenersMayUseThePool(t *testing.T) {
	virtual(t, 2, func(t *testing.T, ms ears, p *Transport) {
		inner, second := newEar(), newEar()
		var mu sync.Mutex
		var s, in, two *feed.Subscription
		e := newEar()
		e.onCall = func() {
			mu.Lock()
			defer mu.Unlock()
			if in == nil {
				in = p.Subscribe(channel("inner"), inner)
			}
			if number, _ := e.heard(); number == 1 {
				s.Close()
				two.Close()
			}
		}
		mu.Lock()
		s = p.Subscribe(channel("a"), e)
		two = p.Subscribe(channel("b"), second)
		mu.Unlock()
		confirmed(t, s, 2)
		confirmed(t, in, 2)
		publish(ms, "a")
		if number, _ := e.heard(); number < 1 || number > 2 {
			t.Errorf("the listener received %d messages, want 1 or 2", number)
		}
		publish(ms, "a")
		confirmed(t, s, 0)
		confirmed(t, two, 0)
		publish(ms, "b")
		inner.want(t, 0, 2)
		second.want(t, 0, 2)
		in.Close()
	})
}

// Subscriptions are opened and closed at random, on slow masters that hang and whose connections are cut. At the end
// every open subscription is active and gets its message once from each master, and no other subscription gets a
// message. When all are closed, only the connections for calls are left.
func TestChurnLosesNoSubscription(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			virtual(t, 3, func(t *testing.T, ms ears, p *Transport) { churn(t, ms, p, seed) })
		})
	}
}

const churnNames = 8 // of each goroutine

func churn(t *testing.T, ms ears, p *Transport, seed uint64) {
	var wg sync.WaitGroup
	for i := range len(ms) {
		rnd := rand.New(rand.NewPCG(seed, uint64(1000+i)))
		wg.Go(func() { disturb(ms[i], rnd, seed%3 == 0) })
	}
	type held struct {
		name int
		ear  *ear
		sub  *feed.Subscription
	}
	kept := make([][]held, 6)
	for g := range kept {
		rnd := rand.New(rand.NewPCG(seed, uint64(g)))
		wg.Go(func() {
			var list []held
			for range 150 {
				name := g*churnNames + rnd.IntN(churnNames)
				if i := slices.IndexFunc(list, func(h held) bool { return h.name == name }); i < 0 {
					h := held{name: name, ear: newEar()}
					h.sub = p.Subscribe(channel(fmt.Sprint(name)), h.ear)
					list = append(list, h)
				} else {
					list[i].sub.Close()
					list = slices.Delete(list, i, i+1)
				}
				if rnd.IntN(3) == 0 {
					<-time.After(time.Duration(rnd.IntN(4000)) * time.Microsecond)
				}
			}
			kept[g] = list
		})
	}
	wg.Wait()
	settle(5 * time.Second)
	for name := range len(kept) * churnNames {
		publish(ms, fmt.Sprint(name))
	}
	for _, list := range kept {
		for _, h := range list {
			confirmed(t, h.sub, len(ms))
			if number, g := h.ear.heard(); g < len(ms) || number != len(ms) {
				t.Errorf("there were %d messages and %d renewals on channel %d: %q", number, g, h.name, h.ear.messages)
			}
			h.sub.Close()
		}
	}
	settle(DefaultHeartbeat)
	connections(t, ms, 1)
}

// disturb delays a master's messages. Unless delayOnly is set, it also cuts the master's connections and makes the
// master hang. At the end the master is healthy.
func disturb(m *fake, rnd *rand.Rand, delayOnly bool) {
	m.set(func() { m.delay = time.Duration(rnd.IntN(1500)) * time.Microsecond })
	for range 12 {
		<-time.After(time.Duration(rnd.IntN(40)) * time.Millisecond)
		switch {
		case delayOnly:
		case rnd.IntN(2) == 0:
			m.cutAll(false)
		default:
			m.hang()
			<-time.After(time.Duration(rnd.IntN(800)) * time.Millisecond)
			m.resume()
		}
	}
	m.set(func() { m.delay = 0 })
}
