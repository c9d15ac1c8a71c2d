package scripts_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/master"
	"github.com/redlock-go/redlock/internal/scripts"
)

func (w *twin) count(name string, reply any) {
	if list, ok := reply.([]any); ok && name == scripts.Many.Name {
		for _, one := range list {
			w.count("many", one)
		}
		return
	}
	what := "ok"
	switch v := reply.(type) {
	case master.Error:
		what, _, _ = strings.Cut(string(v), " ")
	case int64:
		what = fmt.Sprint(v)
	case []any:
		if n, ok := v[0].(int64); ok {
			what = fmt.Sprint(n)
		}
	}
	w.replies[name+" "+what]++
}

func (w *twin) fail(what string, server, pure any) {
	w.t.Helper()
	w.t.Fatalf("step %d: %s\n%s: the server has %s, the pure machine %s", w.step, w.op, what, plain(server), plain(pure))
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

func micros(t *testing.T, reply any) int64 {
	t.Helper()
	pair, err := redis.Int64s(reply, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pair[0]*1e6 + pair[1]
}

// compare wants the same reply from both, with the tolerance that times need.
func (w *twin) compare(what string, server, pure any) {
	w.t.Helper()
	same := false
	switch p := pure.(type) {
	case int64:
		s, ok := server.(int64)
		same = ok && (s == p || w.sameTime(s, p))
	case string:
		s, ok := server.([]byte)
		same = ok && (string(s) == p || w.sameMarker(string(s), p))
	case master.Error:
		s, ok := server.(redis.Error)
		same = ok && (strings.HasPrefix(inner(s), string(p)) || strings.HasPrefix(string(p), "ERR user_script"))
	case []any:
		s, ok := server.([]any)
		if same = ok && len(s) == len(p); same {
			for i := range p {
				if left, ok := p[i].(int64); ok && i > 0 && left > 3 {
					if n, ok := s[i].(int64); ok && w.sameMillis(n, left) {
						continue // the time that a lock has left, which may be short; a place in a queue is less
					}
				}
				w.compare(fmt.Sprint(what, " ", i), s[i], p[i])
			}
		}
	}
	if !same {
		w.fail(what, server, pure)
	}
}

// sameTime compares what is a moment in microseconds, or a time left in milliseconds.
func (w *twin) sameTime(server, pure int64) bool {
	if pure == w.t0 {
		return server >= w.t0 && server <= w.t1
	}
	return pure > 100 && w.sameMillis(server, pure)
}

func (w *twin) sameMillis(server, pure int64) bool {
	return server-pure <= w.slack && pure-server <= w.slack
}

// sameMarker lets the ends of two quarantines, and the times of two epochs, differ by the time that the transaction took.
func (w *twin) sameMarker(server, pure string) bool {
	s, err1 := scripts.ParseMarker(server)
	p, err2 := scripts.ParseMarker(pure)
	took := w.t1 - w.t0
	if err1 != nil || err2 != nil || s.Pending < p.Pending || s.Pending-p.Pending > took || s.Since < p.Since || s.Since-p.Since > took {
		return false
	}
	s.Pending, s.Since = p.Pending, p.Since
	return s == p
}

// compareKey compares one key; seen is its PTTL, its GET and its HGETALL.
func (w *twin) compareKey(key string, seen []any) {
	w.t.Helper()
	left, _ := seen[0].(int64)
	if pure := w.state.TTL(w.t0, key); left != pure && (left < 0 || pure < 0 || !w.sameMillis(left, pure)) {
		w.fail("time left to "+key, left, pure)
	}
	switch v := w.state.Look(w.t0, key); v.Type {
	case master.None:
		if seen[1] != nil {
			w.fail(key, seen[1], nil)
		}
	case master.String:
		text, ok := seen[1].([]byte)
		if ok && string(text) != v.Text && w.sameMarker(string(text), v.Text) {
			w.state.Set(w.t0, key, string(text), 0) // both go on from the same marker
		} else if !ok || string(text) != v.Text {
			w.fail(key, seen[1], v.Text)
		}
	case master.Hash:
		fields, err := redis.StringMap(seen[2], nil)
		if err != nil || !w.sameFields(key, fields, w.state.Hash(w.t0, key)) {
			w.fail(key, seen[2], v.Fields)
		}
	case master.SortedSet:
		members, err := redis.Strings(seen[3], nil)
		var want []string
		for _, f := range v.Fields {
			want = append(want, f.Name, f.Value)
		}
		if err != nil || !slices.Equal(members, want) {
			w.fail(key, seen[3], want)
		}
	default:
		if _, isError := seen[1].(redis.Error); !isError {
			w.fail(key, seen[1], v.Type)
		}
	}
}

// sameFields lets the times until which waiters count differ, by what passes within a transaction.
func (w *twin) sameFields(key string, server, pure map[string]string) bool {
	if !strings.HasSuffix(key, "}:alive") {
		return maps.Equal(server, pure)
	}
	return maps.EqualFunc(server, pure, func(a, b string) bool {
		s, p := strings.SplitN(a, " ", 3), strings.SplitN(b, " ", 3) // when it ceases to count, when its offer ends, the rest
		for i := range min(len(s), len(p), 2) {
			x, err1 := strconv.ParseInt(s[i], 10, 64)
			y, err2 := strconv.ParseInt(p[i], 10, 64)
			if err1 != nil || err2 != nil || !w.sameMillis(x, y) {
				return false
			}
		}
		return len(s) == len(p) && (len(s) < 3 || s[2] == p[2])
	})
}

// compareMessages wants what the server has published, in order, to be what the pure machine has. A last message of
// the test's own tells that the others have come.
func (w *twin) compareMessages() {
	w.must("PUBLISH", prefix.Channel("a"), "end")
	var got []master.Message
	for {
		parts, err := redis.Strings(w.listener.Receive())
		if err != nil {
			w.t.Fatal(err)
		}
		if parts[2] == "end" {
			break
		}
		got = append(got, master.Message{Channel: parts[1], Payload: parts[2]})
	}
	if !slices.Equal(got, w.messages) {
		w.t.Errorf("the server has published %d messages, the pure machine %d, or others:\n%v\n%v", len(got), len(w.messages), got, w.messages)
	}
}
