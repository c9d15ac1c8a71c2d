package transport

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

const secret = "s3cr3t-pass"

func mustNotShow(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error contains the password: %q", err)
	}
}

// minimum is a command that creates a user with the fewest rights that the library needs for the prefix of the
// tests.
var minimum = append([]any{"ACL", "SETUSER", "lock", "reset", "on", ">" + secret}, words(testPrefix.Rule())...)

func words(text string) (list []any) {
	for word := range strings.FieldsSeq(text) {
		list = append(list, word)
	}
	return list
}

func lockUser(s *redistest.Server) string { return "redis://lock:" + secret + "@" + s.Addr() }

// scene returns calls that together execute every command of every script.
func scene(up Event, name string) []*frame.Call {
	keys, at := keysOf(name), up.Info.Time+1
	const ttl = 10 * time.Second
	ticket := scripts.NewTicket(scripts.Plain, "w", 1, "", at, 0)
	later := scripts.NewTicket(scripts.Plain, "w", 2, "", at+1, 0)
	return []*frame.Call{
		encoder.Acquire(keys, "g:1:", term(ttl, at), at, at, 1, nil),
		encoder.Acquire(keys, "g:1:", term(ttl, at+1), at+1, at+1, 1, nil),
		encoder.Acquire(
			keys,
			"g:2:",
			term(ttl, at+2),
			at+2,
			at+2,
			1,
			ticket,
		), // held by another lease, so this waiter is queued
		encoder.Acquire(keys, "g:3:", term(ttl, at+2), at+2, at+2, 1, later),
		encoder.Extend(keys, "g:1:", term(2*ttl, at), 2, ""),
		encoder.Extend(keys, "g:2:", term(ttl, at), 1, ""), // this lease is missing
		encoder.Inspect(keys, 0),
		encoder.Import(keys, "g:4:", "g:1:", term(ttl, at+3), at+3, at+3),
		encoder.Release(keys, scripts.Ending{Leases: []string{"g:4:"}, Ballot: at + 3}), // publishes a wake-up
		encoder.Acquire(keys, "g:5:", term(ttl, at+4), at+4, at+4, 1, later),
		encoder.Acquire(keys, "g:2:", term(ttl, at+5), at+5, at+5, 1, ticket),
		encoder.Release(keys, scripts.Ending{Leases: []string{"g:2:"}, Waiter: ticket}),
		encoder.Repair(keys, "g:6:", "", term(ttl, at+6), at+6, at+6, 1, ""),
		pendingRelease(name, at+9, "g:6:", "g:7:").CallFunc([]string{"g:6:", "g:7:"}, at+9),
	}
}

func admit(step scripts.AdmitStep, identity, seen string) *frame.Call {
	return encoder.Admit(scripts.AdmitRequest{Step: step, Identity: identity, Seen: seen, Tolerance: math.MaxInt64,
		Record: scripts.Record{Masters: "a", Epoch: 1, MaxTTL: time.Minute, Quarantine: time.Minute}})
}

// everyScript executes every command of every script.
func everyScript(t *testing.T, p *Transport, name string) {
	t.Helper()
	up := state(p, 0)
	admitted := func(c *frame.Call) scripts.Admission {
		v, err := call(t, p, 0, c, Condition{})
		if err != nil {
			t.Fatalf("the admission failed: %v", err)
		}
		a, err := scripts.DecodeAdmission(v)
		if err != nil {
			t.Fatalf("the reply to the admission is invalid: %v", err)
		}
		return a
	}
	read := admitted(encoder.Admit(scripts.AdmitRequest{Step: scripts.AdmitRead}))
	if read.Identity != up.Info.Identity() {
		t.Errorf("the script reads the identity %s, the pool reads %s", read.Identity, up.Info.Identity())
	}
	begun := admitted(admit(scripts.AdmitStart, read.Identity, read.Record))
	now := admitted(admit(scripts.AdmitNow, read.Identity, begun.Record))
	if now.Result != scripts.AdmitDone {
		t.Errorf("the master was not admitted: %+v", now)
	}
	for i, c := range scene(up, name) {
		if _, err := call(t, p, 0, c, Condition{Session: up.Session, Stamp: scripts.StampOf(now.Record)}); err != nil {
			t.Errorf("call %d (%s) failed: %v", i, c.Script.Name, err)
		}
	}
}

// The documented minimum of rights is sufficient for all scripts. Without the rights to load scripts or to publish,
// everything still works (H06). Without INFO nothing works, and the error names the right to grant (H60).
func TestLeastRightsSuffice(t *testing.T) {
	srv := startServer(t)
	without := func(words ...any) { srv.Do(append(minimum[:len(minimum):len(minimum)], words...)...) }
	without()
	p := open(t, []string{lockUser(srv)})
	waitUp(t, p)
	if info := state(p, 0).Info; info.BacklogTTL != 0 {
		t.Errorf("without the right to CONFIG GET the INFO of the master is %+v", info)
	}
	p.SetClientName(1, &ClientName{Label: "web-1"}) // without the right to set it
	everyScript(t, p, "n")
	_ = p.Close()

	srv.Do("SCRIPT", "FLUSH")
	without("-script|load", "-publish", "resetchannels")
	p = open(t, []string{lockUser(srv)})
	waitUp(t, p)
	everyScript(t, p, "m")
	_ = p.Close()

	without("-info")
	p = open(t, []string{lockUser(srv)})
	err := waitDown(t, p, 0, fault.ErrRefused)
	for _, s := range []string{"NOPERM", "ACL SETUSER lock +info", "@dangerous"} {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the text %q is not in the error %q", s, err)
		}
	}
	mustNotShow(t, err)
	without()
	waitUp(t, p)
	_ = p.Close()

	p = open(t, []string{lockUser(srv) + "/3"})
	if err := waitDown(t, p, 0, fault.ErrDown); !strings.Contains(err.Error(), "select: NOPERM") {
		t.Errorf("without the right to SELECT the reason is %v", err)
	}
	without("+select")
	waitUp(t, p)
}

// Each documented right is needed. Without a right, the error of a script refers to redlock check, which lists all
// missing rights, and the server may not even name the one that the script needed.
func TestEachRightIsNeeded(t *testing.T) {
	srv := startServer(t)
	for _, r := range scripts.Rights {
		right := r.Rule
		if r.Lacking != "" || right == "eval" || right == "evalsha" || right == "info" {
			continue // a right with Lacking is optional, and without one of the three others nothing works
		}
		srv.Do("FLUSHALL")
		srv.Do(append(minimum[:len(minimum):len(minimum)], "-"+right)...)
		p := open(t, []string{lockUser(srv)})
		waitUp(t, p)
		if err := deniedScript(t, p); err == nil {
			t.Errorf("%s is not needed", right)
		} else if text := err.Error(); !strings.HasSuffix(text, "; "+steps[fault.NoRight].do) {
			t.Errorf("the error without the right %s is %s", right, text)
		}
		_ = p.Close()
	}
}

// deniedScript returns the error of the first script that needs a right which the user lacks.
func deniedScript(t *testing.T, p *Transport) error {
	up := state(p, 0)
	for _, c := range append([]*frame.Call{admit(scripts.AdmitStart, up.Info.Identity(), "")}, scene(up, "n")...) {
		_, err := call(t, p, 0, c, Condition{})
		// The error of a command that is denied inside a script may lack the word NOPERM.
		for _, denial := range []string{"NOPERM", "can't run this command", "has no permissions"} {
			if err != nil && strings.Contains(err.Error(), denial) {
				return err
			}
		}
	}
	return nil
}

// The library dials its connection with the Dial functions of a *redis.Pool. This connection does not count against
// the limit of the *redis.Pool, and connections of the *redis.Pool are not used.
func TestConnectionsFromARedisPool(t *testing.T) {
	srv := startServer(t)
	for name, rp := range map[string]*redis.Pool{
		"Dial": {MaxActive: 1, Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", srv.Addr(), redis.DialReadTimeout(50*time.Millisecond))
		}},
		"DialContext": {MaxActive: 1, DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", srv.Addr(), redis.DialDatabase(2))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := must.Get(New([]Master{FromRedisPool("shared", rp)}, WithTimeout(patience), WithDialTimeout(patience)))(t)
			defer p.Close()
			waitUp(t, p)
			if p.Addr(0) != "shared" || rp.ActiveCount() != 0 {
				t.Errorf("the address is %q, and %d connections of the *redis.Pool are active", p.Addr(0), rp.ActiveCount())
			}
			slow := lua("slow",
				"local t = redis.call('TIME') repeat local n = redis.call('TIME') "+
					"until n[1] ~= t[1] or n[2] - t[2] > 100000 return 1")
			if _, err := call(t, p, 0, slow, Condition{}); err != nil {
				t.Errorf("the read timeout of the *redis.Pool applies to a call: %v", err)
			}
		})
	}
}

// Errors of the dial function of a *redis.Pool are reported without credentials.
func TestErrorsOfARedisPoolAreCleaned(t *testing.T) {
	p := must.Get(New([]Master{FromRedisPool("shared", &redis.Pool{Dial: func() (redis.Conn, error) {
		return nil, errors.New("dial redis://user:" + secret + "@h:1: refused")
	}})}))(t)
	defer p.Close()
	mustNotShow(t, waitDown(t, p, 0, fault.ErrDown))
}
