package transport

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A busyServer needs a fixed time of its only processor for each connection, including those that the client has given
// up.
func busyServer(f *fake, each time.Duration) {
	processor := make(chan struct{}, 1)
	f.on = func(_ io.Writer, cmd []string) (handled bool, err error) {
		if cmd[0] == "INFO" {
			processor <- struct{}{}
			time.Sleep(each)
			<-processor
		}
		return false, nil
	}
}

// H175: a hundred clients connect to masters that need six seconds to accept all of them, while one master hangs.
// Almost every connection is used, the hung master does not delay the others, and it is used soon after it has resumed.
// The same happens when all connections break.
func TestStormOfConnectionsConverges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 100
		ms := newEars(3)
		busyServer(ms[0], 60*time.Millisecond)
		busyServer(ms[2], time.Millisecond)
		ms[1].hang()
		dialer := WithDialer(ms.dial) // one option, hence one set of slots
		var pools []*Transport
		for range clients {
			pools = append(pools, open(t, ms.urls(), dialer))
		}
		up := func(i int) (n int) {
			for _, p := range pools {
				if state(p, i).Session != 0 {
					n++
				}
			}
			return n
		}
		want := func(when string, most int, masters ...int) {
			t.Helper()
			for _, i := range masters {
				ms[i].mu.Lock()
				dials := ms[i].dials
				ms[i].dials = 0
				ms[i].mu.Unlock()
				if n := up(i); n != clients || dials > most {
					t.Errorf("%s: %d of %d clients use master %d after %d connections, at most %d are expected",
						when, n, clients, i, dials, most)
				}
			}
		}
		settle(time.Second)
		want("after a second", clients, 2)
		settle(9 * time.Second)
		want("after ten seconds", clients+clients/10, 0)
		ms[1].resume()
		settle(5 * time.Second)
		if n := up(1); n != clients {
			t.Errorf("%d of %d clients use the master that hung", n, clients)
		}
		ms[0].cutAll(false)
		settle(10 * time.Second)
		want("after an outage", clients+clients/10, 0)
		for _, p := range pools {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
	})
}

// Pools share the slots of the process, unless they have a dialer that is not that of another Redis client.
func TestPoolsShareSlots(t *testing.T) {
	slots := func(m Master, opts ...Option) *wire.Slots {
		t.Helper()
		_, configs, err := settings([]Master{m}, opts)
		if err != nil {
			t.Fatal(err)
		}
		return configs[0].Slots
	}
	m, dialer := URL("redis://m0"), WithDialer(newFake("a").dial)
	foreign := FromRedisPool("m0", &redis.Pool{Dial: func() (redis.Conn, error) { return nil, io.EOF }})
	for _, s := range []*wire.Slots{slots(m), slots(foreign), slots(m, dialer, WithProcessSlots())} {
		if s != wire.Process {
			t.Errorf("the slots are %p, want those of the process", s)
		}
	}
	if s := slots(m, dialer); s == wire.Process || s != slots(m, dialer) || s == slots(m, WithDialer(newFake("b").dial)) {
		t.Error("the slots of a dialer are not those of its option")
	}
}
