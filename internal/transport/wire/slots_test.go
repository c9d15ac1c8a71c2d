package wire

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// H175: an address has a limited number of slots, which attempts get in order; those that replace a connection come
// first. Other addresses are not affected.
func TestSlotsAreGivenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(Slots)
		enter := func(addr string, known bool) func() {
			return must.Get(s.enter(t.Context(), addr, time.Minute, known))(t)
		}
		var leaves []func()
		for range most {
			leaves = append(leaves, enter("a", false))
		}
		order := ""
		for _, name := range []string{"1", "2", "K", "L"} {
			go func() {
				leave := enter("a", name > "9")
				order += name
				leave()
			}()
			synctest.Wait()
		}
		enter("b", false)()
		if order != "" {
			t.Fatalf("%q got a slot beyond the limit", order)
		}
		leaves[0]()
		synctest.Wait()
		if order != "KL12" {
			t.Errorf("the slots were given to %q, want KL12", order)
		}
		for _, leave := range leaves[1:] {
			leave()
		}
		if len(s.used) > 0 {
			t.Errorf("slots are still in use: %v", s.used)
		}
	})
}

// An attempt waits for a slot until its time limit, or until its context ends. A slot that it is given at that moment
// is not lost.
func TestWaitForASlotEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(Slots)
		var leaves []func()
		for range most {
			leave, _ := s.enter(t.Context(), "a", time.Second, false)
			leaves = append(leaves, leave)
		}
		_, err := s.enter(t.Context(), "a", time.Second, false)
		if !errors.Is(err, fault.ErrTimeout) || !errors.Is(err, fault.ErrDown) ||
			!strings.Contains(err.Error(), "or this host is overloaded") {
			t.Errorf("after the time limit the error is %v", err)
		}
		retired := errors.New("retired")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second/2, func() { cancel(retired) })
		if _, err := s.enter(ctx, "a", time.Second, true); !errors.Is(err, retired) {
			t.Errorf("after the end of the context the error is %v", err)
		}
		for range 100 { // either end of the select may win
			time.AfterFunc(time.Second, leaves[0])
			leave, err := s.enter(t.Context(), "a", time.Second, false)
			synctest.Wait()
			if err != nil {
				if leave, err = s.enter(t.Context(), "a", 0, false); err != nil {
					t.Fatal("a slot was lost")
				}
			}
			leaves[0] = leave
		}
		for _, leave := range leaves {
			leave()
		}
		if len(s.used) > 0 {
			t.Errorf("slots are still in use: %v", s.used)
		}
	})
}
