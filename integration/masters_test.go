package integration

import (
	"testing"
	"time"
)

// The harness itself: the scenarios rely on this when they pause, kill and restart a master.
func TestMastersAnswerHangDieAndComeBackEmpty(t *testing.T) {
	five := masters(t, 5)
	seen := map[string]bool{}
	for _, m := range five {
		if seen[m.URL()] {
			t.Fatalf("two masters at %s", m.URL())
		}
		seen[m.URL()] = true
		if got := command(t, m, "PING"); got != "PONG" {
			t.Fatalf("%s replied %v to a PING", m.Name(), got)
		}
		command(t, m, "SET", "there", "1")
	}

	hung, dead := five[1], five[3]
	each(t, Master.Pause, hung)
	if err := ping(hung.URL(), 300*time.Millisecond); err == nil {
		t.Errorf("%s replied while it was paused", hung.Name())
	}
	each(t, Master.Resume, hung)
	if got, ok := command(t, hung, "GET", "there").([]byte); !ok || string(got) != "1" {
		t.Errorf("%s has %q after its pause, want its previous value", hung.Name(), got)
	}

	each(t, Master.Kill, dead)
	if err := ping(dead.URL(), time.Second); err == nil {
		t.Errorf("%s replied after it was killed", dead.Name())
	}
	each(t, Master.Start, dead)
	if got := command(t, dead, "GET", "there"); got != nil {
		t.Errorf("%s has %q after it was killed, want nothing", dead.Name(), got)
	}
	for _, m := range five {
		if err := ping(m.URL(), time.Second); err != nil {
			t.Errorf("%s: %v", m.Name(), err)
		}
	}
}

// Every master is paused or killed when its test ends; the cleanup must not hang or leave anything.
func TestMastersAreRemovedInAnyState(t *testing.T) {
	var addresses []string
	t.Run("use", func(t *testing.T) {
		list := masters(t, 2)
		addresses = urls(list)
		each(t, Master.Pause, list[0])
		each(t, Master.Kill, list[1])
	})
	for _, u := range addresses {
		if err := ping(u, time.Second); err == nil {
			t.Errorf("%s still answers after its test", u)
		}
	}
	if left, err := containersLeft(); err != nil || left != 0 {
		t.Errorf("%d containers left, %v", left, err)
	}
}
