package memory_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/memory"
)

func TestHangingMasterExecutesLaterWhatItsClientSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(1)
		defer m.Close()
		one := m.Master(0)
		c := dial(t, m, 0)
		load(t, c)
		one.Hang()
		one.Hang() // a second Hang has no effect
		done := make(chan error, 1)
		go func() {
			_, err := acquire(c, one, "a", "me:1")
			done <- err
		}()
		<-time.After(time.Minute)
		select {
		case err := <-done:
			t.Fatalf("a hanging master replied: %v", err)
		default:
		}
		if id, _, _ := one.Holds("a"); id != "" {
			t.Error("a hanging master executed a command")
		}
		if nc, err := m.Dial(t.Context(), "tcp", one.Addr()); err != nil {
			t.Errorf("a hanging master refused a connection: %v", err)
		} else {
			_ = nc.Close()
		}
		_ = c.Close() // the client gives up after its bytes are sent
		if err := <-done; err == nil {
			t.Error("the closed connection received a reply")
		}
		one.Resume()
		one.Resume()
		synctest.Wait()
		if n := one.Commands()["acquire"]; n != 1 {
			t.Errorf("%d acquires were executed", n)
		}
		if n := one.Connections(); n != 0 {
			t.Errorf("%d connections left", n)
		}
	})
}

func TestDelayTakesItsTimeEachWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(1)
		defer m.Close()
		one := m.Master(0)
		c := dial(t, m, 0)
		load(t, c)
		one.Delay(50 * time.Millisecond)
		start := time.Now()
		for range 3 { // pipelined: all three are in flight together
			if err := c.Send("TIME"); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			pair, err := redis.Int64s(c.Receive())
			if err != nil {
				t.Fatal(err)
			}
			if at := time.Unix(pair[0], pair[1]*1000).Sub(start); at != 50*time.Millisecond {
				t.Errorf("executed after %v", at)
			}
			if took := time.Since(start); took != 100*time.Millisecond {
				t.Errorf("reply after %v", took)
			}
		}
		one.Delay(0)
		start = time.Now()
		if _, err := c.Do("PING"); err != nil || time.Since(start) != 0 {
			t.Errorf("without a delay: %v, %v", time.Since(start), err)
		}
	})
}

func TestCutConnectionsLosesWhatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(1)
		defer m.Close()
		one := m.Master(0)
		c := dial(t, m, 0)
		load(t, c)
		one.Delay(time.Second)
		done := make(chan error, 1)
		go func() {
			_, err := acquire(c, one, "a", "me:1")
			done <- err
		}()
		synctest.Wait()
		one.CutConnections()
		if err := <-done; err == nil {
			t.Error("a cut connection received a reply")
		}
		<-time.After(time.Minute)
		if one.Commands()["acquire"] != 0 {
			t.Error("a message in flight arrived after the cut")
		}
	})
}

func TestDroppedRepliesAndRequests(t *testing.T) {
	m := newMasters(t, 1)
	one := m.Master(0)
	try := func(name string) error {
		c := dial(t, m, 0)
		load(t, c)
		_, err := acquire(c, one, name, "me:"+name)
		return err
	}
	one.DropReplies(1)
	if err := try("a"); err == nil {
		t.Error("the reply was not dropped")
	}
	if id, _, _ := one.Holds("a"); id != "me:a" {
		t.Error("an acquire whose reply was dropped had no effect")
	}
	one.DropRequests(2)
	for range 2 {
		if err := try("b"); err == nil {
			t.Error("the request was not dropped")
		}
	}
	if id, _, _ := one.Holds("b"); id != "" {
		t.Error("a dropped request had an effect")
	}
	if err := try("b"); err != nil {
		t.Errorf("after the faults: %v", err)
	}
}

func TestRefusedScriptsDoNothing(t *testing.T) {
	m := newMasters(t, 1)
	one := m.Master(0)
	c := dial(t, m, 0)
	load(t, c)
	one.Refuse("OOM command not allowed when used memory > 'maxmemory'.")
	_, err := acquire(c, one, "a", "me:1")
	var text redis.Error
	if !errors.As(err, &text) || !strings.HasPrefix(string(text), "OOM ") {
		t.Errorf("refused: %v", err)
	}
	if id, _, _ := one.Holds("a"); id != "" {
		t.Error("a refused script wrote a key")
	}
	one.Refuse("")
	mustGrant(t, c, one, "a", "me:1")
}

func TestStoppedMasterRefusesConnections(t *testing.T) {
	m := newMasters(t, 1)
	one := m.Master(0)
	c := dial(t, m, 0)
	one.Stop()
	if _, err := c.Do("PING"); err == nil {
		t.Error("a stopped master replied")
	}
	if _, err := m.Dial(t.Context(), "tcp", one.Addr()); err == nil {
		t.Error("a stopped master accepted a connection")
	}
	if _, err := m.Dial(t.Context(), "tcp", "nobody:1"); err == nil {
		t.Error("Dial of an unknown address succeeded")
	}
	one.Restart(true)
	if _, err := dial(t, m, 0).Do("PING"); err != nil {
		t.Error(err)
	}
}
