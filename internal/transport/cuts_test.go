package transport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// A ticket is the Receiver of one call. It records the outcome of the call.
type ticket struct {
	id      string
	mu      sync.Mutex
	replies int
	err     *Error
}

func (k *ticket) Reply(_ int, _ any, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.replies++
	if err != nil {
		k.err = err.(*Error) //nolint:errorlint // the contract is that it is no other
	}
}

// A history records the calls that the servers have executed.
type history struct {
	mu  sync.Mutex
	ran map[string]int
}

// answer returns a function that answers calls. At random it executes a call, replies that the script is not known,
// or closes the connection before or after it executes the call.
func (l *history) answer(rnd *rand.Rand) func(cmd []string) string {
	return func(cmd []string) string {
		l.mu.Lock()
		defer l.mu.Unlock()
		n := rnd.IntN(100)
		switch {
		case n < 2:
			return ""
		case n < 12 && cmd[0] == "EVALSHA":
			return "-NOSCRIPT No matching script\r\n"
		}
		l.ran[cmd[3]]++
		switch {
		case n < 14:
			return ""
		case n < 20:
			return "-ERR some error\r\n"
		}
		return ":1\r\n"
	}
}

// trouble closes a connection of the server, makes the server hang, changes its run ID, or does nothing, at random.
func trouble(rnd *rand.Rand, srv *fake) {
	switch rnd.IntN(4) {
	case 0:
		srv.cut()
	case 1:
		srv.hang()
		pass(time.Duration(rnd.IntN(900)) * time.Millisecond)
		srv.resume()
	case 2:
		srv.set(func() { srv.runID = fmt.Sprintf("%s%x", srv.runID[:1], rnd.IntN(1000)) })
	}
}

// Each call that was sent gets exactly one reply, even if connections fail. If the reply says that a call had no
// effect, the server has not executed the call. No call is executed twice.
func TestEachCallGetsExactlyOneReply(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { oneReplyEach(t, seed) })
		})
	}
}

func oneReplyEach(t *testing.T, seed uint64) {
	const masters, senders, calls = 3, 6, 60
	book := &history{ran: make(map[string]int)}
	fakes := make([]*fake, masters)
	named := make([]Master, masters)
	for i := range fakes {
		fakes[i] = newFake(fmt.Sprint(i))
		fakes[i].answer = book.answer(rand.New(rand.NewPCG(seed, uint64(i))))
		named[i] = URL(fmt.Sprintf("redis://m%d", i), WithDialer(fakes[i].dial))
	}
	p := must.Get(New(named, WithHeartbeat(200*time.Millisecond), WithQueueLimit(40)))(t)
	var wg sync.WaitGroup
	tickets := make([][]*ticket, senders)
	for g := range senders {
		wg.Go(func() { tickets[g] = sendAtRandom(p, rand.New(rand.NewPCG(seed, uint64(100+g))), g, calls) })
	}
	for i := range fakes {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(200+i)))
			for range 15 {
				pass(time.Duration(rnd.IntN(300)) * time.Millisecond)
				trouble(rnd, fakes[i])
			}
		})
	}
	wg.Wait()
	_ = p.Close()
	synctest.Wait()
	for _, list := range tickets {
		for _, k := range list {
			k.check(t, book)
		}
	}
}

// sendAtRandom sends calls and returns the tickets of those that were accepted.
func sendAtRandom(p *Transport, rnd *rand.Rand, g, calls int) []*ticket {
	var list []*ticket
	for n := range calls {
		k := &ticket{id: fmt.Sprintf("%d-%d", g, n)}
		i := rnd.IntN(p.N())
		st := Condition{Session: state(p, i).Session}
		one := lua("x", "return 1", k.id)
		if rnd.IntN(4) > 0 {
			one, k.id = acquireOf(k.id, 7), testPrefix.Lock(k.id)
		}
		if err := p.Send(i, one, st, k); err == nil {
			list = append(list, k)
		}
		if rnd.IntN(4) == 0 {
			pass(time.Duration(rnd.IntN(250)) * time.Millisecond)
		}
	}
	return list
}

func (k *ticket) check(t *testing.T, book *history) {
	k.mu.Lock()
	defer k.mu.Unlock()
	book.mu.Lock()
	ran := book.ran[k.id]
	book.mu.Unlock()
	var reply redis.Error
	switch {
	case k.replies != 1:
		t.Errorf("call %s got %d replies", k.id, k.replies)
	case ran > 1:
		t.Errorf("call %s was executed %d times", k.id, ran)
	case k.err != nil && errors.As(k.err, &reply) && fault.Code(reply) == "NOSCRIPT":
		if ran != 0 || k.err.Unknown || k.err.Op != "acquire" {
			t.Errorf("call %s failed because its script is not known (%v), but was executed %d times", k.id, k.err, ran)
		}
	case k.err == nil || errors.As(k.err, &reply):
		if ran != 1 || k.err != nil && (k.err.Unknown || k.err.Op == "" || errors.Is(k.err, fault.ErrDown)) {
			t.Errorf("call %s was answered (%v), but was executed %d times", k.id, k.err, ran)
		}
	case !k.err.Unknown && ran != 0:
		t.Errorf("call %s was reported to have had no effect (%v), but was executed", k.id, k.err)
	}
}
