package scripts_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/master"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
)

const seedEnv = "REDLOCK_TEST_SEED"

// TestServerAndPureMachineAgree gives a real server and package master the same random operations, on few names, ids
// and ballots so that they meet, and on keys that hold what they should not. Each reply and the keys after each
// operation must be the same; times may differ by what passes within one transaction.
func TestServerAndPureMachineAgree(t *testing.T) {
	s := redistest.Test(t, 1, redisproc.Config{})[0]
	seeds := []uint64{1, 2, 3, 4, 5, rand.Uint64()}
	if text := os.Getenv(seedEnv); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", seedEnv, err)
		}
		seeds = []uint64{seed}
	}
	total := map[string]int{}
	for _, seed := range seeds {
		ok := t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			w := newTwin(t, s, seed)
			for w.step = range 2000 {
				w.next()
				if w.step%400 == 0 {
					w.nonsense()
				}
			}
			w.compareMessages()
			for _, m := range w.messages {
				if n, ok := prefix.ParseNotice(m.Payload); ok {
					w.replies["notice "+string(n.Kind)]++
				} else if strings.HasPrefix(m.Channel, prefix.Inbox("")) {
					t.Errorf("%q is no notice", m.Payload)
				}
			}
			for reply, n := range w.replies {
				total[reply] += n
			}
		})
		if !ok {
			t.Fatalf("again: %s=%d go test -run %s", seedEnv, seed, t.Name())
		}
	}
	if os.Getenv(seedEnv) != "" {
		return
	}
	for _, reply := range []string{
		"acquire 1", "acquire 2", "acquire 3", "acquire 4", "acquire 5", "acquire 6", "acquire 7",
		"acquire WRONGTYPE", "acquire BADBAR", "acquire BADMARKER", "extend 1", "extend 5", "extend 7", "extend WRONGTYPE",
		"extend BADMARKER", "release 0", "release 1", "release WRONGTYPE", "release BADBAR", "inspect ok", "inspect WRONGTYPE",
		"admit 1", "admit 2", "admit 3", "admit 4", "admit 5", "admit WRONGTYPE", "notice F", "notice R", "notice G",
		"many 0", "many 1", "many 2", "many 3", "many 4", "many 6", "many WRONGTYPE", "many BADBAR",
	} {
		if total[reply] < 3 {
			t.Errorf("the operations gave the reply %q %d times only: they show too little", reply, total[reply])
		}
	}
	t.Logf("replies: %v", total)
}

// A twin drives both sides.
type twin struct {
	*client

	rnd      *rand.Rand
	state    *master.State
	env      master.Env
	messages []master.Message // that the pure machine has published
	listener redis.Conn
	replies  map[string]int
	step     int
	op       string
	t0, t1   int64 // the server's time before and after the last operation
	slack    int64 // the longest transaction so far, in ms: by as much may the two have given a key its time apart
}

var (
	names = []string{"a", "b"}
	// heard are the channels that somebody listens to: of three inboxes two.
	heard = []string{prefix.Channel("a"), prefix.Channel("b"), prefix.Inbox("x"), prefix.Inbox("y:y\n")}
)

func newTwin(t *testing.T, s *redisproc.Server, seed uint64) *twin {
	w := &twin{rnd: rand.New(rand.NewPCG(seed, 0)), state: new(master.State), replies: map[string]int{}}
	w.client = newClient(t, func() redis.Conn {
		c, err := redis.Dial("unix", s.Unix())
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
	w.must("FLUSHALL")
	info, err := redis.String(w.must("INFO"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(info, "\r\n") {
		if v, ok := strings.CutPrefix(line, "run_id:"); ok {
			w.env.RunID = v
		} else if v, ok := strings.CutPrefix(line, "master_replid:"); ok {
			w.env.ReplID = v
		}
	}
	w.listener = w.dial()
	t.Cleanup(func() { _ = w.listener.Close() })
	w.env.Hears = func(channel string) int {
		if slices.Contains(heard, channel) {
			return 1
		}
		return 0
	}
	for _, channel := range heard {
		if err := w.listener.Send("SUBSCRIBE", channel); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.listener.Flush(); err != nil {
		t.Fatal(err)
	}
	for range heard {
		if _, err := w.listener.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func pick[T any](w *twin, of ...T) T { return of[w.rnd.IntN(len(of))] }

// next does one operation on both sides and compares.
func (w *twin) next() {
	switch n := w.rnd.IntN(100); {
	case n < 40:
		w.both(w.acquireCall())
	case n < 54:
		w.both(w.extendCall())
	case n < 58:
		w.both(w.extendManyCall())
	case n < 75:
		w.both(w.releaseCall())
	case n < 80:
		w.both(fleet.InspectCall(prefix.Keys(pick(w, names...))), "")
	case n < 84:
		w.both(w.admitCall())
	case n < 88:
		w.both(w.manyCall())
	case n < 94:
		w.handing()
	default:
		w.disturb()
	}
}

func (w *twin) name() string { return pick(w, names...) }
func (w *twin) id() string   { return pick(w, "me:1", "me:2", "other:1") }
func (w *twin) life() time.Duration {
	return pick(w, 20*time.Second, 30*time.Second, 60*time.Second)
}

// stamp is the marker that the caller expects: none, the one that is there, or another.
func (w *twin) stamp() string {
	there, _ := w.state.Get(w.t1, prefix.Marker())
	return pick(w, "", there, there, "v1 something else")
}

// ballot is near the bar, near the master's time, beyond the window, or at the end of what Lua can count.
func (w *twin) ballot(name string) int64 {
	raw, _ := w.state.Get(w.t1, prefix.Bar(name))
	bar, _ := strconv.ParseInt(raw, 10, 64)
	bar = min(max(bar, 0), scripts.MaxBallot-2)
	now := w.now()
	far := (window + 10*time.Second).Microseconds()
	return pick(w, bar-1, bar, bar, bar+1, bar+1, bar+2, now, now, now+1, now-far/2, now+far/2, now-far, now+far, 0, scripts.MaxBallot)
}

func (w *twin) acquireCall() (*scripts.Call, string) {
	name := w.name()
	first := w.ballot(name)
	last := pick(w, first, first, first, first+1000)
	h := scripts.NewHold(prefix.Keys(name), w.id(), pick(w, "", "", w.id()))
	if w.rnd.IntN(2) == 0 {
		t := w.ticket()
		h.Previous = t.String()
		return w.fleet().QueueCall(h, t, pick(w, true, false), w.life(), pick(w, 0, time.Minute, time.Minute), first, last), w.stamp()
	}
	mode := pick(w, scripts.ModeAcquire, scripts.ModeAcquire, scripts.ModeHeal, scripts.ModeImport)
	return w.fleet().AcquireCall(h, mode, w.life(), first, last, pick(w, 1, 1, 2)), w.stamp()
}

func (w *twin) extendCall() (*scripts.Call, string) {
	return w.fleet().ExtendCall(hold(w.name(), w.id()), pick(w, 0, w.life(), w.life()), pick(w, 1, 2, 3)), w.stamp()
}

// extendManyCall extends some names, of holds of two Lockers.
func (w *twin) extendManyCall() (*scripts.Call, string) {
	var holds []scripts.ManyHold
	for _, name := range names {
		if w.rnd.IntN(3) > 0 {
			holds = append(holds, scripts.ManyHold{Name: name, Number: pick(w, uint64(1), 2), Depth: pick(w, 1, 2, 3)})
		}
	}
	return w.fleet().ExtendManyCall(prefix, pick(w, "me", "me", "other"), holds, pick(w, 0, w.life(), w.life())), w.stamp()
}

func (w *twin) admitCall() (*scripts.Call, string) {
	there, _ := w.state.Get(w.t1, prefix.Marker())
	own := w.env.Identity()
	return w.fleet().AdmitCall(scripts.AdmitRequest{
		Step:     pick(w, scripts.AdmitRead, scripts.AdmitStart, scripts.AdmitStart, scripts.AdmitEnd, scripts.AdmitEnd, scripts.AdmitNow, scripts.AdmitGuard, scripts.AdmitGuard, scripts.AdmitEpoch, scripts.AdmitEpoch),
		Identity: pick(w, own, own, own, own, "f00/ba4"),
		Seen:     pick(w, there, there, there, there, there, "v1 something else"),
		Median:   w.now() + pick(w, 0, 0, int64(5e6), -5e6, 60e6), Tolerance: window,
		Quarantine: pick(w, 0, time.Minute), Guard: pick(w, guard, 20*time.Second), Epoch: pick(w, int64(0), 3, 4), Alone: pick(w, int64(0), 2),
		Home: pick(w, "", "", "10.0.0.1:6379", "%2Fa%20b"),
	}), ""
}

// disturb changes keys behind the scripts' backs, in the same way on both sides.
func (w *twin) disturb() {
	now, name := w.now(), w.name()
	key := pick(w, prefix.Lock(name), prefix.Lock(name), prefix.Bar(name), prefix.Bar(name), prefix.Marker(),
		prefix.Queue(name), prefix.Alive(name))
	switch w.rnd.IntN(8) {
	case 0, 1:
		w.op = "DEL " + key
		w.must("DEL", key)
		w.state.Delete(now, key)
	case 2:
		w.op = "PEXPIRE 0 " + key
		w.must("PEXPIRE", key, 0)
		w.state.Expire(now, key, 0)
	case 3:
		text := pick(w, "", "12x", "-5", "1e3", " 7", "007", "9007199254740990", "9007199254740993", strings.Repeat("9", 30))
		w.op = fmt.Sprintf("SET bar %q", text)
		w.must("SET", prefix.Bar(name), text)
		w.state.Set(now, prefix.Bar(name), text, 0)
	case 4:
		m := scripts.Marker{Identity: pick(w, w.env.Identity(), "f00/ba4"), Guard: pick(w, guard, 20*time.Second), Epoch: pick(w, int64(0), 3), Since: now - 5e6, Alone: 2}
		m.Pending = pick(w, 0, 0, now-1e6, now+60e6)
		text := pick(w, m.String(), m.String(), m.String(), "v2 nonsense", "")
		w.op = fmt.Sprintf("SET marker %q", text)
		w.must("SET", prefix.Marker(), text)
		w.state.Set(now, prefix.Marker(), text, 0)
	case 5:
		w.op = "a list at " + key
		w.must("DEL", key)
		w.must("RPUSH", key, 1)
		w.state.SetOther(key)
	case 6:
		w.op = "a string at " + key
		w.must("SET", key, "17")
		w.state.Set(now, key, "17", 0)
	case 7: // a lock that never expires, and one with two owners
		fields := []master.Field{{Name: "other:1", Value: "1"}, {Name: "me:1", Value: "2"}}[:1+w.rnd.IntN(2)]
		w.op = fmt.Sprint("a hash without a time ", fields)
		w.must("DEL", prefix.Lock(name))
		for _, f := range fields {
			w.must("HSET", prefix.Lock(name), f.Name, f.Value)
		}
		w.state.SetHash(prefix.Lock(name), fields...)
	}
}

// both runs one call on both sides. On the server the call, the clock before and after it, and a look at every key are
// one transaction.
func (w *twin) both(call *scripts.Call, stamp string) {
	args := append([]any(nil), call.Args...)
	if call.Stamp != 0 {
		args[call.Stamp] = stamp
	}
	w.op = fmt.Sprint(call.Script.Name, " ", args[1:])
	keys := []string{prefix.Marker()}
	for _, name := range names {
		keys = append(keys, prefix.Lock(name), prefix.Bar(name), prefix.Queue(name), prefix.Alive(name))
	}
	w.letExpire(keys)
	send := func(command string, args ...any) {
		if err := w.Send(command, args...); err != nil {
			w.t.Fatal(err)
		}
	}
	send("MULTI")
	send("TIME")
	send("EVALSHA", args...)
	send("TIME")
	for _, key := range keys {
		send("PTTL", key)
		send("GET", key)
		send("HGETALL", key)
		send("ZRANGE", key, 0, -1, "WITHSCORES")
	}
	send("TIME")
	answers, err := redis.Values(w.Do("EXEC"))
	if err != nil {
		w.t.Fatalf("step %d: %s: %v", w.step, w.op, err)
	}
	w.t0, w.t1 = micros(w.t, answers[0]), micros(w.t, answers[2])
	w.slack = max(w.slack, (micros(w.t, answers[len(answers)-1])-w.t0)/1000+2)

	nkeys, _ := strconv.Atoi(fmt.Sprint(args[1]))
	texts := make([]string, len(args)-2)
	for i, a := range args[2:] {
		texts[i] = fmt.Sprint(a)
		if b, ok := a.([]byte); ok {
			texts[i] = string(b)
		}
	}
	reply, out := w.state.Eval(w.t0, w.env, call.Script, texts[:nkeys], texts[nkeys:])
	w.messages = append(w.messages, out...)
	w.compare("reply", answers[1], reply)
	w.count(call.Script.Name, reply)
	for i, key := range keys {
		w.compareKey(key, answers[3+4*i:])
	}
}
