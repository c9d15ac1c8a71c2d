package transport

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// grown runs f with four fakes and a Transport of the first two.
func grown(t *testing.T, f func(t *testing.T, ms ears, p *Transport)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ms := newEars(4)
		p := open(t, ms.urls()[:2], WithDialer(ms.dial))
		synctest.Wait()
		f(t, ms, p)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

func ask(t *testing.T, p *Transport, i int) error {
	t.Helper()
	_, err := call(t, p, i, inspect("a"), Condition{})
	return err
}

// A master that is added is dialled with the options of the others, joins the existing subscriptions, and is reported
// to watchers. A master that is retired loses its connections, and the other masters are not affected. Each master
// keeps its number.
func TestMastersComeAndGo(t *testing.T) {
	grown(t, func(t *testing.T, ms ears, p *Transport) {
		e := newEar()
		s := p.Subscribe(channel("a"), e)
		var mu sync.Mutex
		up := map[int]int{}
		p.Watch(func(event Event) {
			mu.Lock()
			defer mu.Unlock()
			if event.Err == nil {
				up[event.Master]++
			}
		})
		confirmed(t, s, 2)
		numbers, err := p.Use(URL(ms.urls()[2]), URL(ms.urls()[1]), URL(ms.urls()[3]))
		if err != nil || len(numbers) != 3 || numbers[0] != 2 || numbers[1] != 1 || numbers[2] != 3 || p.N() != 4 {
			t.Fatalf("Use returned the numbers %v of %d masters, and the error %v", numbers, p.N(), err)
		}
		confirmed(t, s, 4)
		publish(ms, "a")
		e.want(t, 4, 4)
		mu.Lock()
		if len(up) != 4 {
			t.Errorf("the watcher saw the masters %v, want four masters", up)
		}
		mu.Unlock()
		for i := range 4 {
			if err := ask(t, p, i); err != nil {
				t.Errorf("a call to master %d failed: %v", i, err)
			}
		}

		must.Get(p.Use(URL(ms.urls()[0])))(t)
		p.Retain(0)
		p.Release(0, true) // another client still uses the master
		if err := ask(t, p, 0); err != nil {
			t.Errorf("a call to a master that another client uses failed: %v", err)
		}
		p.Release(0, true)
		synctest.Wait()
		confirmed(t, s, 3)
		if err := ask(t, p, 0); !errors.Is(err, fault.ErrRetired) {
			t.Errorf("a call to a retired master returned %v", err)
		}
		settle(time.Minute) // a retired master is not dialled again
		if n := ms[0].connections(); n != 0 {
			t.Errorf("there are %d connections to a retired master", n)
		}
		if _, ok := p.Find("m0:6379"); ok {
			t.Error("Find returned a retired master")
		}
		if err := ask(t, p, 3); err != nil {
			t.Error(err)
		}
		again, err := p.Use(URL(ms.urls()[0]))
		if err != nil || again[0] != 4 {
			t.Errorf("adding the name of the retired master again returned %v, %v", again, err)
		}
		synctest.Wait()
		if err := ask(t, p, 4); err != nil {
			t.Error(err)
		}
		confirmed(t, s, 4)
	})
}

// Use rejects invalid masters before it dials any. It returns an error if the Transport is closed.
func TestUseRejectsInvalidMasters(t *testing.T) {
	grown(t, func(t *testing.T, ms ears, p *Transport) {
		many := make([]Master, most-1)
		for i := range many {
			many[i] = URL(fmt.Sprintf("redis://other%d", i))
		}
		for _, list := range [][]Master{
			{URL(ms.urls()[2]), URL("ftp://x")},
			{URL(ms.urls()[2]), URL(ms.urls()[2])},
			{{}},
			append(many, URL(ms.urls()[1])), // 65 masters in total, the last of which is known
		} {
			if numbers, err := p.Use(list...); !errors.Is(err, fault.ErrInvalid) || numbers != nil {
				t.Errorf("Use of an invalid list returned %v, %v", numbers, err)
			}
		}
		p.Release(1, false)
		if p.N() != 2 || ms[2].connections() != 0 {
			t.Error("a master was added")
		}
		must.Do(t, p.Close())
		if _, err := p.Use(URL(ms.urls()[2])); !errors.Is(err, fault.ErrPoolClosed) {
			t.Errorf("Use after Close returned %v", err)
		}
	})
}

// H170: a user that was given the number of a master keeps the master: another user that retires the master at this
// instant does not. A master without a user has a new number when it is named again.
func TestNumberComesWithReference(t *testing.T) {
	grown(t, func(t *testing.T, ms ears, p *Transport) {
		use := func(want int) {
			t.Helper()
			numbers, err := p.Use(URL(ms.urls()[2]))
			if err != nil || numbers[0] != want {
				t.Fatalf("Use returned %v, %v, want number %d", numbers, err, want)
			}
		}
		use(2)
		use(2)
		p.Release(2, true)
		settle(time.Minute)
		if err := ask(t, p, 2); err != nil {
			t.Errorf("a call to a master that a second user was given before the first retired it returned %v", err)
		}
		p.Release(2, true)
		use(3)
		settle(time.Second) // until the retired one has left the server: before, the server would have two votes
		if err := ask(t, p, 3); err != nil {
			t.Error(err)
		}
	})
}
