package transport

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
	_, err := call(t, p, i, inspect("a"), Stamp{})
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
		p.Watch(func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Err == nil {
				up[e.Master]++
			}
		})
		confirmed(t, s, 2)
		numbers, err := p.Add(URL(ms.urls()[2]), URL(ms.urls()[1]), URL(ms.urls()[3]))
		if err != nil || len(numbers) != 3 || numbers[0] != 2 || numbers[1] != 1 || numbers[2] != 3 || p.N() != 4 {
			t.Fatalf("Add returned the numbers %v of %d masters, and the error %v", numbers, p.N(), err)
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

		p.Retain(0)
		p.Retain(0)
		p.Release(0, true) // another client still uses the master
		if err := ask(t, p, 0); err != nil {
			t.Errorf("a call to a master that another client uses failed: %v", err)
		}
		p.Release(0, true)
		synctest.Wait()
		confirmed(t, s, 3)
		if err := ask(t, p, 0); !errors.Is(err, ErrRetired) {
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
		if again, err := p.Add(URL(ms.urls()[0])); err != nil || again[0] != 4 {
			t.Errorf("adding the name of the retired master again returned %v, %v", again, err)
		}
		synctest.Wait()
		if err := ask(t, p, 4); err != nil {
			t.Error(err)
		}
		confirmed(t, s, 4)
	})
}

// Add rejects invalid masters before it dials any. It returns an error if the Transport is closed.
func TestAddRejectsInvalidMasters(t *testing.T) {
	grown(t, func(t *testing.T, ms ears, p *Transport) {
		for _, list := range [][]Master{
			{URL(ms.urls()[2]), URL("ftp://x")},
			{URL(ms.urls()[2]), URL(ms.urls()[2])},
			{{}},
		} {
			if numbers, err := p.Add(list...); !errors.Is(err, ErrInvalid) || numbers != nil {
				t.Errorf("Add of an invalid list returned %v, %v", numbers, err)
			}
		}
		if p.N() != 2 || ms[2].connections() != 0 {
			t.Error("a master was added")
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Add(URL(ms.urls()[2])); !errors.Is(err, ErrClosed) {
			t.Errorf("Add after Close returned %v", err)
		}
	})
}
