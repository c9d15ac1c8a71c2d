package scripts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// TestReleaseWithoutRightsToTheChannel (H06): the release of a user that may not publish still deletes and answers.
func TestReleaseWithoutRightsToTheChannel(t *testing.T) {
	c := onServer(t)
	c.must("ACL", "SETUSER", "locker", "on", ">pw", "~redlock:*", "resetchannels", "+@all")
	user := c.second()
	user.must("AUTH", "locker", "pw")
	if _, err := user.Do("PUBLISH", prefix.Channel("a"), "x"); err == nil {
		t.Fatal("the user may publish: the test shows nothing")
	}
	h, now := hold("a", "me:1"), c.now()
	user.want(scripts.Granted, acquire(h, now))
	if !user.release(h, now+1, true) {
		t.Error("the hold was not there")
	}
	if got := c.snapshot("a"); len(got.lock) != 0 || c.bar("a") != fmt.Sprint(now+1) {
		t.Errorf("the keys are %+v", got)
	}
}

// TestFullMasterWritesNothing (H56): at its memory limit a master refuses what would add, entirely; a hold that is
// there still ends, and its late messages are still barred.
func TestFullMasterWritesNothing(t *testing.T) {
	c := onServer(t)
	h, now := hold("a", "me:1"), c.now()
	c.want(scripts.Granted, acquire(h, now))
	c.must("CONFIG", "SET", "maxmemory", "1")
	before := c.snapshot("a")
	c.wantError("OOM", acquire(h, now+1), "")
	c.wantError("OOM", acquire(hold("b", "me:2"), now), "")
	c.wantError("OOM", fleet.ExtendCall(h, ttl, 2), "")
	c.unchanged("a", before)
	c.want(scripts.Granted, fleet.ExtendCall(h, ttl, 1)) // an extension adds nothing
	if got := c.snapshot("b"); len(got.lock) != 0 || got.bar != "" {
		t.Errorf("a refused acquire has written %+v", got)
	}
	if !c.release(h, now+1, true) {
		t.Error("the hold was not there")
	}
	if c.release(hold("b", "me:2"), now, false) {
		t.Error("the hold was there")
	}
	for name, bar := range map[string]int64{"a": now + 1, "b": now} {
		if got := c.snapshot(name); len(got.lock) != 0 || c.bar(name) != fmt.Sprint(bar) {
			t.Errorf("%s: the keys are %+v", name, got)
		}
	}
}

// TestReplicaAnswersReadonly (H56, H57) and changes nothing.
func TestReplicaAnswersReadonly(t *testing.T) {
	c := onServer(t)
	h, now := hold("a", "me:1"), c.now()
	c.want(scripts.Granted, acquire(h, now))
	c.must("REPLICAOF", "127.0.0.1", "1") // nobody is there, so the keys stay
	before := c.snapshot("a")
	c.wantError("READONLY", acquire(h, now+1), "")
	c.wantError("READONLY", acquire(hold("b", "me:2"), now+1), "")
	c.wantError("READONLY", fleet.ExtendCall(h, ttl, 2), "")
	c.wantError("READONLY", fleet.ReleaseCall(h, now+1, true, scripts.Reserve), "")
	c.wantError("READONLY", fleet.AdmitCall(c.request(scripts.AdmitNow)), "")
	c.unchanged("a", before)
	c.must("REPLICAOF", "NO", "ONE")
	c.want(scripts.Granted, acquire(h, now+1))
}

// TestReplicationIDIsPartOfTheIdentity (H57): a failback keeps the run id.
func TestReplicationIDIsPartOfTheIdentity(t *testing.T) {
	c := onServer(t)
	before := c.request(scripts.AdmitNow)
	c.must("REPLICAOF", "127.0.0.1", "1")
	c.must("REPLICAOF", "NO", "ONE")
	after := c.request(scripts.AdmitNow)
	if before.Identity == after.Identity || before.Identity[:41] != after.Identity[:41] {
		t.Errorf("identity before %s, after %s", before.Identity, after.Identity)
	}
	c.wantAdmit(scripts.AdmitOtherIdentity, before)
}

// TestDebtOfManyHolds: one payment takes as many ids as Lua can unpack.
func TestDebtOfManyHolds(t *testing.T) {
	c := onServer(t)
	now := c.now()
	ids := make([]string, 7000)
	for i := range ids {
		ids[i] = fmt.Sprint("me:", i)
	}
	c.want(scripts.Granted, acquire(hold("a", ids[6999]), now))
	reply, err := c.run(fleet.DebtCall(prefix.Keys("a"), ids, now), "")
	if there, derr := scripts.DecodeReleased(reply); err != nil || derr != nil || !there {
		t.Errorf("%v, %v, %v", there, err, derr)
	}
}

// An argument that is no number is an error of the one run that it is about, with a code as every error has.
func TestAnArgumentThatIsNoNumberIsAnErrorOfItsOwn(t *testing.T) {
	c := onServer(t)
	now := c.now()
	var g scripts.Group
	g.Add(acquire(hold("a", "me:1"), now))
	g.Add(acquire(hold("b", "me:2"), now))
	args := g.AppendArgs(nil, "")
	args[len(args)-3] = "x" // the first ballot
	replies, err := redis.Values(c.Do("EVALSHA", args...))
	if err != nil || len(replies) != 2 {
		t.Fatal(replies, err)
	}
	if text, _ := replies[0].(redis.Error); !strings.HasPrefix(string(text), "ERR ") || replies[1] != int64(1) {
		t.Errorf("the replies are %v", replies)
	}
}
