package scripts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

func valueOf(t *testing.T, version int64, text string) scripts.Value {
	t.Helper()
	return must.Get(scripts.NewValue(version, text))(t)
}

// A value belongs to one lease. A late or duplicated message does not restore an older value.
func TestValueBelongsToLease(t *testing.T) {
	c := onServer(t)
	now, id := c.now(), grant(me, 1)
	shows := func(version int64, text string) {
		t.Helper()
		if h := c.inspect("a"); h.ID != id || h.Version != version || h.Value != text {
			t.Errorf("the inspection returned %+v, want version %d with %q", h, version, text)
		}
	}
	one, three := valueOf(t, 1, "10.0.0.1:80"), valueOf(t, 3, "a b\n\x00 7")
	c.want(quorum.Missing, enc.Extend(keys("a"), id, term(ttl, c.now()), 1, one))
	c.want(quorum.Granted, acquire("a", id, now))
	shows(0, "")
	c.want(quorum.Granted, enc.Extend(keys("a"), id, scripts.Term{}, 1, one))
	shows(1, "10.0.0.1:80")
	c.want(quorum.Granted, enc.Extend(keys("a"), id, term(time.Minute, c.now()), 2, three))
	before := c.everything("a")
	for _, late := range []*frame.Call{
		enc.Extend(keys("a"), id, term(ttl, c.now()), 2, one), enc.Extend(keys("a"), id, term(ttl, c.now()), 2, three),
		enc.Extend(keys("a"), id, term(ttl, c.now()), 2, ""),
	} {
		c.want(quorum.Granted, late)
	}
	if got := c.everything("a"); got != before {
		t.Errorf("late messages changed the keys\n%s to\n%s", before, got)
	}
	c.want(quorum.Granted, enc.Repair(keys("a"), id, "", term(ttl, now+1), now+1, now, 1, one))
	shows(3, "a b\n\x00 7")
	if v := c.want(quorum.Held, acquire("a", grant(other, 1), now+2)); v.Holder != id || v.Token != now {
		t.Errorf("the refusal is %+v", v)
	}
	long := valueOf(t, 4, strings.Repeat("x", scripts.MaxValue))
	c.want(quorum.Granted, enc.Extend(keys("a"), id, term(ttl, c.now()), 1, long))
	c.want(quorum.Held, acquire("a", grant(other, 1), now+2))
	shows(4, strings.Repeat("x", scripts.MaxValue))

	c.must("DEL", prefix.Lock("a"))
	c.want(quorum.Granted, enc.Repair(keys("a"), id, "", term(ttl, now+1), now+1, now, 1, three))
	shows(3, "a b\n\x00 7")
	from := id
	id = grant(me, 2)
	c.want(quorum.Granted, enc.Import(keys("a"), id, from, term(ttl, now+5), now+5, now+5))
	shows(0, "")
	c.want(quorum.Granted, enc.Extend(keys("a"), id, term(ttl, c.now()), 1, one))
	c.release("a", ending(id))
	id = grant(me, 3)
	c.want(quorum.Granted, acquire("a", id, now+6))
	shows(0, "")
}

// A full master refuses a call that only writes a value. It executes an extension with a new value, but keeps the old
// value.
func TestFullMasterKeepsOldValue(t *testing.T) {
	c := onServer(t)
	id := grant(me, 1)
	c.want(quorum.Granted, acquire("a", id, c.now()))
	c.want(quorum.Granted, enc.Extend(keys("a"), id, scripts.Term{}, 1, valueOf(t, 1, "old")))
	c.must("CONFIG", "SET", "maxmemory", "1")
	c.wantError("OOM", enc.Extend(keys("a"), id, scripts.Term{}, 1, valueOf(t, 2, "new")), "")
	c.want(quorum.Granted, enc.Extend(keys("a"), id, term(time.Minute, c.now()), 1, valueOf(t, 2, "new")))
	if h := c.inspect("a"); h.Value != "old" || !near(h.Left, time.Minute) {
		t.Errorf("the inspection of the full master returned %+v", h)
	}
	c.must("CONFIG", "SET", "maxmemory", "0")
	c.want(quorum.Granted, enc.Extend(keys("a"), id, term(time.Minute, c.now()), 1, valueOf(t, 2, "new")))
	if h := c.inspect("a"); h.Value != "new" {
		t.Errorf("the inspection returned %+v, want the new value", h)
	}
}

func TestValuesAreChecked(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "\x00é": true, "\xff": false, strings.Repeat("x", scripts.MaxValue): true,
		strings.Repeat("x", scripts.MaxValue+1): false,
	} {
		if _, err := scripts.NewValue(1, text); (err == nil) != ok {
			t.Errorf("NewValue of %.20q returned %v", text, err)
		}
	}
}
