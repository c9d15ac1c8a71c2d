package pool

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// grown runs f with four fakes and a pool that knows the first two.
func grown(t *testing.T, f func(t *testing.T, ms ears, p *Pool)) {
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

func ask(t *testing.T, p *Pool, i int) error {
	t.Helper()
	_, err := call(t, p, i, inspect("a"), Stamp{})
	return err
}

// A master that is added is dialled with the options of the others, is heard by those who listen already, and is told
// to those who watch; one that is retired has no connection any more, and the others go on. Numbers stay.
func TestMastersComeAndGo(t *testing.T) {
	grown(t, func(t *testing.T, ms ears, p *Pool) {
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
		standing(t, s, 2)
		numbers, err := p.Add(URL(ms.urls()[2]), URL(ms.urls()[1]), URL(ms.urls()[3]))
		if err != nil || len(numbers) != 3 || numbers[0] != 2 || numbers[1] != 1 || numbers[2] != 3 || p.N() != 4 {
			t.Fatalf("numbers %v of %d, %v", numbers, p.N(), err)
		}
		standing(t, s, 4)
		publish(ms, "a")
		e.want(t, 4, 4)
		mu.Lock()
		if len(up) != 4 {
			t.Errorf("told of %v", up)
		}
		mu.Unlock()
		for i := range 4 {
			if err := ask(t, p, i); err != nil {
				t.Errorf("master %d: %v", i, err)
			}
		}

		p.Retain(0)
		p.Retain(0)
		p.Release(0, true) // somebody else uses it
		if err := ask(t, p, 0); err != nil {
			t.Errorf("one that is in use: %v", err)
		}
		p.Release(0, true)
		synctest.Wait()
		standing(t, s, 3)
		if err := ask(t, p, 0); !errors.Is(err, ErrRetired) {
			t.Errorf("a retired one: %v", err)
		}
		if err := s.Err(0); !errors.Is(err, ErrRetired) {
			t.Errorf("its subscription: %v", err)
		}
		settle(time.Minute) // it is not dialled again
		if n := ms[0].connections(); n != 0 {
			t.Errorf("%d connections to a retired master", n)
		}
		if _, ok := p.Find("m0:6379"); ok {
			t.Error("a retired master is found")
		}
		if err := ask(t, p, 3); err != nil {
			t.Error(err)
		}
		if again, err := p.Add(URL(ms.urls()[0])); err != nil || again[0] != 4 {
			t.Errorf("its name once more: %v, %v", again, err)
		}
		synctest.Wait()
		if err := ask(t, p, 4); err != nil {
			t.Error(err)
		}
		standing(t, s, 4)
	})
}

// What cannot be right is told before anything is dialled, and a closed Pool takes nothing.
func TestAddRefusesWhatCannotBeRight(t *testing.T) {
	grown(t, func(t *testing.T, ms ears, p *Pool) {
		for _, list := range [][]Master{
			{URL(ms.urls()[2]), URL("ftp://x")},
			{URL(ms.urls()[2]), URL(ms.urls()[2])},
			{{}},
		} {
			if numbers, err := p.Add(list...); !errors.Is(err, ErrInvalid) || numbers != nil {
				t.Errorf("%v, %v", numbers, err)
			}
		}
		if p.N() != 2 || ms[2].connections() != 0 {
			t.Error("something was added")
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Add(URL(ms.urls()[2])); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
