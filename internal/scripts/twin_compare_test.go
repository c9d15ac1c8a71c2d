package scripts_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
	"github.com/redlock-go/redlock/internal/skew"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// edges returns the times, in us, at which a key, a lease, a waiter or a quarantine ends, or at which a ballot in args
// leaves the window of the scripts. A call just before such a time has another result than one just after it.
func (w *twin) edges(keys []string, args []any) (list []int64) {
	for _, key := range keys {
		v := w.state.Look(w.t1, key)
		if v.Expires != 0 {
			kept, err := strconv.ParseInt(w.state.Hash(w.t1, key)[scripts.FieldKept], 10, 64)
			if err != nil {
				kept = scripts.FenceKept.Milliseconds()
			}
			list = append(list, v.Expires, v.Expires-kept*1000) // the end of the key, and of a lease in it
		}
		for _, f := range v.Fields {
			if at, err := strconv.ParseInt(f.Value, 10, 64); err == nil && v.Type == reference.SortedSet {
				list = append(list, at, at-12*second) // the end of a share or a waiter, and of the patience with a writer
			}
		}
		if r, err := scripts.ParseRecord(v.Text); err == nil {
			list = append(list, r.Since+20*second, r.Since+30*second, r.Since+60*second) // the quarantines of w.record
		}
	}
	window, counts := skew.Window.Microseconds(), scripts.WaiterCounts.Microseconds()
	for _, a := range args {
		if ballot, err := strconv.ParseInt(fmt.Sprint(a), 10, 64); err == nil && ballot > second {
			list = append(list, ballot-window, ballot+window, ballot+counts)
		}
	}
	return list
}

// letPass waits until no edge is near. Otherwise it might come before the call on one side, and after the call on the
// other.
func (w *twin) letPass(edges []int64) {
	const margin = 10_000
	slices.Sort(edges)
	for _, at := range edges {
		if now := w.now(); at+1000+w.slack() >= now && at <= now+margin+w.slack() {
			for w.now() <= at+1000+w.slack() {
			}
		}
	}
}

func (w *twin) count(call *frame.Call, reply any) {
	name, what := call.Script.Name, "ok"
	switch v := reply.(type) {
	case reference.Error:
		what, _, _ = strings.Cut(string(v), " ")
	case int64:
		what = fmt.Sprint(v)
	case []any:
		if n, ok := v[0].(int64); ok {
			what = fmt.Sprint(n)
			if n == int64(quorum.Held) && v[2] == int64(1) {
				what += " free"
			}
		}
	}
	w.replies[name+" "+what]++
	if call.Script == scripts.Admit {
		_, argv := call.Arguments("")
		w.replies[fmt.Sprint(name, " ", argv[0], " ", what)]++
	}
}

func (w *twin) fail(what string, server, pure any) {
	w.t.Helper()
	w.t.Fatalf("step %d: %s\n%s: the server has %s, the reference has %s", w.step, w.op, what, plain(server), plain(pure))
}

func plain(v any) string {
	if b, ok := v.([]byte); ok {
		return strconv.Quote(string(b))
	}
	if l, ok := v.([]any); ok {
		parts := make([]string, len(l))
		for i := range l {
			parts[i] = plain(l[i])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprintf("%#v", v)
}

func micros(t testing.TB, reply any) int64 {
	t.Helper()
	pair := must.Get(redis.Int64s(reply, nil))(t)
	return pair[0]*second + pair[1]
}

// compare requires equal replies of both sides, except for differences that the passing of time explains.
func (w *twin) compare(what string, server, pure any) {
	w.t.Helper()
	same := false
	switch p := pure.(type) {
	case int64:
		s, ok := server.(int64)
		same = ok && (s == p || p == w.t0 && s >= w.t0 && s <= w.t1)
	case string:
		s, ok := server.([]byte)
		same = ok && (string(s) == p || w.sameRecord(string(s), p))
	case reference.Error:
		s, ok := server.(redis.Error)
		same = ok && (strings.HasPrefix(fault.Inner(string(s)), string(p)) || strings.HasPrefix(string(p), "ERR user_script"))
	case []any:
		s, ok := server.([]any)
		if same = ok && len(s) == len(p); same {
			for i := range p {
				// In a vote, element 1 is a remaining TTL in ms, which may differ, or a small number, which must be equal.
				left, isNumber := p[i].(int64)
				if n, ok := s[i].(int64); ok && isNumber && i == 1 && left > 10 && w.sameMillis(n, left) {
					continue
				}
				w.compare(fmt.Sprint(what, " ", i), s[i], p[i])
			}
		}
	}
	if !same {
		w.fail(what, server, pure)
	}
}

func (w *twin) sameMillis(server, pure int64) bool { return w.sameMicros(server*1000, pure*1000) }

func (w *twin) sameMicros(server, pure int64) bool {
	return server-pure <= w.slack() && pure-server <= w.slack()
}

// sameRecord reports whether two records are equal. Their times may differ by the duration of the transaction.
func (w *twin) sameRecord(server, pure string) bool {
	s, err1 := scripts.ParseRecord(server)
	p, err2 := scripts.ParseRecord(pure)
	if err1 != nil || err2 != nil || !w.sameMicros(s.Since, p.Since) || !w.sameMicros(s.Raised, p.Raised) {
		return false
	}
	s.Since, s.Raised = p.Since, p.Raised
	return s == p
}

// compareKey compares one key. seen contains the replies of the server to PTTL, GET, HGETALL and ZRANGE. If the
// passing of time may explain a difference, the reference adopts the server's value.
func (w *twin) compareKey(key string, seen []any) {
	w.t.Helper()
	left, _ := seen[0].(int64)
	if pure := w.state.TTL(w.t0, key); left != pure && (left < 0 || pure < 0 || !w.sameMillis(left, pure)) {
		w.fail("TTL of "+key, left, pure)
	}
	switch v := w.state.Look(w.t0, key); v.Type {
	case reference.None:
		if seen[1] != nil {
			w.fail(key, seen[1], nil)
		}
	case reference.String:
		text, ok := seen[1].([]byte)
		if ok && string(text) != v.Text && w.sameRecord(string(text), v.Text) {
			w.state.Set(w.t0, key, string(text), 0)
		} else if !ok || string(text) != v.Text {
			w.fail(key, seen[1], v.Text)
		}
	case reference.Hash:
		fields, err := redis.StringMap(seen[2], nil)
		w.adoptKept(key, fields)
		if err != nil || !maps.Equal(fields, w.state.Hash(w.t0, key)) {
			w.fail(key, seen[2], v.Fields)
		}
	case reference.SortedSet:
		w.compareSet(key, seen[3], v.Fields)
	default:
		if _, isError := seen[1].(redis.Error); !isError {
			w.fail(key, seen[1], v.Type)
		}
	}
}

// adoptKept sets the field kept, which depends on the time, to that of the server if the passing of time may explain
// the difference.
func (w *twin) adoptKept(key string, server map[string]string) {
	theirs, err1 := strconv.ParseInt(server[scripts.FieldKept], 10, 64)
	ours, err2 := strconv.ParseInt(w.state.Hash(w.t0, key)[scripts.FieldKept], 10, 64)
	if err1 == nil && err2 == nil && theirs != ours && w.sameMillis(theirs, ours) {
		w.state.SetField(w.t0, key, scripts.FieldKept, server[scripts.FieldKept])
	}
}

func (w *twin) compareSet(key string, seen any, pure []reference.Field) {
	w.t.Helper()
	members, err := redis.Strings(seen, nil)
	if err != nil || len(members) != 2*len(pure) {
		w.fail(key, seen, pure)
	}
	for i, f := range pure {
		server, err := strconv.ParseInt(members[2*i+1], 10, 64)
		if err != nil || members[2*i] != f.Name {
			w.fail(key, seen, pure)
		}
		score, _ := strconv.ParseInt(f.Value, 10, 64)
		if score != server && (strings.HasSuffix(key, "queue") || !w.sameMicros(server, score)) {
			w.fail(key, seen, pure)
		}
		if score != server {
			w.state.SetScore(w.t0, key, f.Name, server)
		}
	}
}

// compareMessages requires that the server has published the same messages to each inbox as the reference, in the
// same order.
func (w *twin) compareMessages() {
	w.t.Helper()
	if got := w.heard(); !slices.Equal(got, w.messages) {
		w.t.Errorf("the server published %d messages, the reference %d, or they differ:\n%v\n%v",
			len(got), len(w.messages), got, w.messages)
	}
	w.messages = nil
}

// heard returns the messages that the server has published since the last call. The test itself publishes a last
// message; when that arrives, all others have arrived.
func (w *twin) heard() (got []string) {
	w.must("PUBLISH", heard[0], "end")
	for {
		parts := must.Get(redis.Strings(w.listener.Receive()))(w.t)
		if parts[2] == "end" {
			return got
		}
		got = append(got, parts[1]+" "+parts[2])
	}
}

// restart empties both sides, because time may explain different results of the last operation, which was slow. The
// messages before it are compared.
func (w *twin) restart() {
	w.t.Helper()
	got := w.heard()
	if n := len(w.messages); len(got) < n || !slices.Equal(got[:n], w.messages) {
		w.t.Errorf("the server published %v, the reference %v", got, w.messages)
	}
	w.messages = nil
	w.must("FLUSHALL")
	w.state.Flush()
	w.restarts++
}
