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

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
	"github.com/redlock-go/redlock/internal/skew"
)

const seedEnv = "REDLOCK_TEST_SEED"

// TestServerAndReferenceAgree runs the same random operations on a real server and on package reference. It uses few
// names, ids and ballots, so that they collide, and foreign values in some keys. Each reply, and the keys after each
// operation, must be equal; times may differ by the duration of a transaction.
func TestServerAndReferenceAgree(t *testing.T) {
	s := redistest.Test(t, 1, redisproc.Config{})[0]
	seeds, steps := []uint64{1, 2, 3, 4, 5, rand.Uint64()}, 2500
	if !long.Enabled() {
		seeds, steps = []uint64{rand.Uint64()}, 800
	}
	if text := os.Getenv(seedEnv); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("the value of %s is not a seed: %v", seedEnv, err)
		}
		seeds = []uint64{seed}
	}
	total := map[string]int{}
	run := func(seed uint64) {
		t.Helper()
		ok := t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			w := newTwin(t, s, seed)
			for w.step = range steps {
				w.next()
			}
			w.compareMessages()
			for reply, n := range w.replies {
				total[reply] += n
			}
			t.Logf("%d of %d operations were too slow to be compared: both sides were emptied", w.restarts, steps)
		})
		if !ok {
			t.Fatalf("to repeat this: %s=%d go test -run %s", seedEnv, seed, t.Name())
		}
	}
	for _, seed := range seeds {
		run(seed)
	}
	if os.Getenv(seedEnv) != "" || !long.Enabled() {
		return // there are too few operations for all replies
	}
	rare := func() []string {
		return slices.DeleteFunc(slices.Clone(everyReply), func(reply string) bool { return total[reply] >= 3 })
	}
	for range 6 { // the numbers depend on the time that the operations take
		if len(rare()) > 0 {
			run(rand.Uint64())
		}
	}
	if list := rare(); len(list) > 0 {
		t.Errorf("the operations gave the replies %q less than 3 times", list)
	}
	t.Logf("numbers of replies: %v", total)
}

// everyReply lists the replies that the operations must give.
var everyReply = []string{
	"acquire 1", "acquire 2", "acquire 2 free", "acquire 3", "acquire 4", "acquire 5", "acquire 6",
	"acquire 8", "acquire WRONGTYPE", "acquire BADFENCE", "extend 1", "extend 5", "extend 7", "extend 8",
	"extend WRONGTYPE",
	"release 0", "release 1", "release WRONGTYPE", "release BADFENCE", "inspect ok",
	"inspect WRONGTYPE", "admit 1", "admit 2", "admit 3", "admit 4", "admit 5", "admit WRONGTYPE", "hint", "recall",
	"admit read 1", "admit start 1", "admit end 1", "admit now 1", "admit max-ttl 1", "admit settle 1", "admit epoch 1",
	"admit rewrite 1",
	"slot acquire 1", "slot acquire 2", "slot acquire 3", "slot acquire 5", "slot acquire 6", "slot acquire 8",
	"slot acquire WRONGTYPE", "slot extend 1", "slot extend 5", "slot extend 7", "slot extend 8",
	"slot extend WRONGTYPE",
	"shared acquire 1", "shared acquire 2", "shared acquire 2 free", "shared acquire 3", "shared acquire 4",
	"shared acquire 5", "shared acquire 6", "shared acquire 8", "shared acquire WRONGTYPE", "shared acquire BADFENCE",
	"shared extend 1", "shared extend 5", "shared extend 7", "shared extend WRONGTYPE", "shared release 0",
	"shared release 1", "shared release WRONGTYPE", "shared release BADFENCE", "probe",
}

// A twin runs operations on the server and on the reference.
type twin struct {
	*client

	rnd      *rand.Rand
	state    *reference.State
	env      reference.Env
	messages []string // messages that the reference has published to clients
	listener redis.Conn
	replies  map[string]int
	restarts int // number of transactions whose result cannot be compared
	step     int
	op       string
	t0, t1   int64 // the server's time before and after the last operation, in us
	longest  int64 // duration of the longest transaction that was compared, in us
}

var (
	// One name of plain locks, one of readers and writers, and one that is a semaphore of two or of one.
	names = []string{"a", "b", "c", slot(1, 2), slot(2, 2), slot(1, 1)}
	// Three owners. The inboxes of the first two have a subscriber.
	owners = []string{me, other, "deaf"}
	heard  = []string{prefix.Inbox(me), prefix.Inbox(other)}
)

// slot returns the name of a slot of "c".
func slot(number, of int) string { return scripts.Slot{Number: number, Of: of}.Name("c") }

func newTwin(t *testing.T, s *redisproc.Server, seed uint64) *twin {
	w := &twin{rnd: rand.New(rand.NewPCG(seed, 0)), state: new(reference.State), replies: map[string]int{}}
	w.client = clientOf(t, s)
	w.must("FLUSHALL")
	info := must.Get(redis.String(w.must("INFO"), nil))(t)
	for line := range strings.SplitSeq(info, "\r\n") {
		if v, ok := strings.CutPrefix(line, "run_id:"); ok {
			w.env.RunID = v
		}
	}
	w.env.Publish = func(channel, payload string) int {
		if !slices.Contains(heard, channel) {
			return 0
		}
		w.messages = append(w.messages, channel+" "+payload)
		h, ok := prefix.ParseWakeUp(payload)
		if !ok || !slices.Contains(names, h.Name) {
			t.Errorf("%q is not a wake-up", payload)
		}
		switch {
		case h.Probe:
			w.replies["probe"]++
		case h.Lease != "":
			w.replies["recall"]++
		default:
			w.replies["hint"]++
		}
		return 1
	}
	w.listener = w.dial()
	t.Cleanup(func() { _ = w.listener.Close() })
	for _, channel := range heard {
		must.Do(t, w.listener.Send("SUBSCRIBE", channel))
	}
	must.Do(t, w.listener.Flush())
	for range heard {
		must.Get(w.listener.Receive())(t)
	}
	return w
}

func pick[T any](w *twin, of ...T) T { return of[w.rnd.IntN(len(of))] }

// next runs one operation on both sides and compares the results.
func (w *twin) next() {
	switch n := w.rnd.IntN(100); {
	case n < 42:
		w.both(w.acquireCall())
	case n < 58:
		k := w.keys()
		id := w.id(k)
		for _, f := range w.state.Look(w.t1, k.Lock()).Fields {
			if strings.Contains(f.Name, ":") && w.rnd.IntN(2) == 0 {
				id = f.Name // usually a lease that exists
			}
		}
		w.both(enc.Extend(k, id, w.extension(), pick(w, 1, 2, 3, 1|scripts.Lingers), w.value(k)), w.stamp())
	case n < 79:
		w.both(w.releaseCall())
	case n < 83:
		w.both(enc.Inspect(keys(w.name()), w.term(w.now()).Asked), "")
	case n < 91:
		w.both(w.admitCall(), "")
	case n < 94:
		w.manyWaiters()
	default:
		w.disturb()
	}
}

// name returns a name; a slot is usually one of two.
func (w *twin) name() string {
	return pick(w, "a", "a", "a", "b", "b", "b", pick(w, names[2:]...), slot(1, 2), slot(2, 2))
}

// keys returns the keys of a name in a role. Usually "a" has plain locks, and "b" has readers and writers.
func (w *twin) keys() *scripts.Keys {
	name, role := w.name(), pick(w, scripts.Reader, scripts.Reader, scripts.Writer)
	if _, slot := scripts.CutSlot(name); slot.Of > 0 || w.rnd.IntN(20) == 0 == (name == "b") {
		role = scripts.Plain
	}
	k := prefix.KeysOf(name, role)
	return &k
}

// id returns the id of a lease in the role of k. For a readers-writer lock it sometimes returns a lease in the other
// role.
func (w *twin) id(k *scripts.Keys) string {
	role := k.Role()
	if role == scripts.Reader {
		role = pick(w, scripts.Reader, scripts.Reader, scripts.Reader, scripts.Writer)
	}
	return scripts.ShareID(pick(w, me, me, other), pick(w, uint64(1), 2), role, 7, "label")
}

// value returns no value, or one of a few versions. As with real clients, each version has only one text.
func (w *twin) value(k *scripts.Keys) scripts.Value {
	version := pick(w, int64(0), 0, 1, 2, 3)
	if version == 0 || k.Role() != scripts.Plain {
		return ""
	}
	texts := []string{"", "10.0.0.1:80 v2", "7 8", "é\n \x00", strings.Repeat("x", scripts.MaxValue)}
	return must.Get(scripts.NewValue(version, texts[version]))(w.t)
}

func (w *twin) life() time.Duration {
	return pick(w, 20*time.Second, 30*time.Second, 60*time.Second)
}

// term returns the term of a lease whose acquire has this first ballot. Often its deadline in ballots has passed, or is
// the ballot itself. Sometimes the ballot is above the time of the request.
func (w *twin) term(first int64) scripts.Term {
	life := w.life()
	until := pick(
		w,
		first+life.Microseconds(),
		first+life.Microseconds(),
		w.now()+life.Microseconds(),
		first,
		w.now()-second,
	)
	asked := pick(w, 0, 0, 0, w.now(), max(0, first-second), max(0, first-60*second))
	return scripts.Term{TTL: life, Until: min(max(0, until), scripts.MaxBallot), Asked: asked}
}

// extension returns the term of an extension, or the zero Term.
func (w *twin) extension() scripts.Term {
	return pick(w, scripts.Term{}, w.term(w.now()), w.term(w.now()))
}

// stamp returns the stamp that the caller expects: none, the present stamp, or another stamp.
func (w *twin) stamp() string {
	there, _ := w.state.Get(w.t1, prefix.Admission())
	stamp := scripts.StampOf(there)
	return pick(w, "", stamp, stamp, stamp, "v4 something else")
}

// ballot returns a ballot near the fence, near the master's time, outside of the window, or near the largest number
// of Lua.
func (w *twin) ballot(k *scripts.Keys) int64 {
	raw := w.state.Hash(w.t1, k.Lock())[scripts.FieldFence]
	fence, _ := strconv.ParseInt(raw, 10, 64)
	fence = min(max(fence, 0), scripts.MaxBallot-2)
	now, far := w.now(), 25*second
	return pick(w, fence-1, fence, fence+1, fence+1, fence+2, now, now, now, now, now+1, now-far/2, now+far/2, now-far,
		now+far,
		fence+far/2, 0, scripts.MaxBallot)
}

// ticket returns one of few waiters, with equal or different ranks. The waiters do not depend on the present time,
// so that late messages of a waiter occur.
func (w *twin) ticket(role scripts.Role) *scripts.Ticket {
	number := uint64(w.rnd.IntN(3))
	return scripts.NewTicket(role, pick(w, owners...), number, "", int64(1_700_000_000_000_000+number%2), pick(w, 0, 0, 0,
		-1, 7))
}

func (w *twin) acquireCall() (*frame.Call, string) {
	k := w.keys()
	first := w.ballot(k)
	last := pick(w, first, first, first, first+1000)
	switch w.rnd.IntN(10) {
	case 0:
		depth := pick(w, 1, 2, 1|scripts.Lingers)
		return enc.Repair(
			k,
			w.id(k),
			pick(w, "", w.id(k)),
			w.term(first),
			first,
			w.now()-second,
			depth,
			w.value(k),
		), w.stamp()
	case 1, 2:
		return enc.Import(k, w.id(k), w.id(k), w.term(first), first, last), w.stamp()
	case 3, 4:
		return enc.Acquire(k, w.id(k), w.term(first), first, last, 1, nil), w.stamp()
	case 5, 6:
		if k.Role() == scripts.Plain {
			return enc.Acquire(
				k,
				w.id(k),
				w.term(first),
				first,
				last,
				1|scripts.Lingers,
				pick(w, nil, w.ticket(k.Role())),
			), w.stamp()
		}
	}
	return enc.Acquire(k, w.id(k), w.term(first), first, last, 1, w.ticket(k.Role())), w.stamp()
}

func (w *twin) releaseCall() (*frame.Call, string) {
	k := w.keys()
	end := scripts.Ending{Leases: []string{w.id(k), w.id(k), w.id(k)}[:w.rnd.IntN(4)]}
	end.Keep = pick(
		w,
		scripts.Term{},
		scripts.Term{},
		scripts.Term{},
		term(10*time.Second, w.now()),
		term(40*time.Second, w.now()),
	)
	if w.rnd.IntN(2) == 0 {
		end.Ballot = max(0, w.ballot(k))
	}
	if w.rnd.IntN(2) == 0 {
		end.Waiter, end.Back = w.ticket(k.Role()), w.rnd.IntN(2) == 0
		end.AskBallot = w.now() - pick(w, 0, second, 19*second, 25*second)
	}
	return enc.Release(k, end), ""
}

func (w *twin) admitCall() *frame.Call {
	there, _ := w.state.Get(w.t1, prefix.Admission())
	own := w.env.Identity()
	record := w.record()
	record.DurableName = pick(w, "", "", "10.0.0.1:6379", "%2Fa%20b")
	record.Shard = pick(w, scripts.Shard{}, scripts.Shard{}, scripts.Shard{}, scripts.Shard{}, scripts.Shard{},
		scripts.Shard{Number: 2, Of: 3}, scripts.Shard{Number: 1, Of: 2})
	return enc.Admit(scripts.AdmitRequest{
		Step: pick(w, scripts.AdmitRead, scripts.AdmitStart, scripts.AdmitStart, scripts.AdmitEnd, scripts.AdmitEnd,
			scripts.AdmitEnd, scripts.AdmitNow, scripts.AdmitNow, scripts.AdmitReplace, scripts.AdmitMaxTTL,
			scripts.AdmitSettle, scripts.AdmitSettle, scripts.AdmitEpoch, scripts.AdmitEpoch, scripts.AdmitRewrite,
			scripts.AdmitRewrite),
		Identity: pick(w, own, own, own, own, own, "f00/ba4/7"),
		Seen:     pick(w, there, there, there, there, there, there, "v4 something else"),
		Median:   w.now() + pick(w, 0, 0, 5*second, -5*second, 60*second), Tolerance: skew.Window,
		Record: record,
	})
}

// record returns a record that a client may have written, for this server or another server.
func (w *twin) record() scripts.Record {
	r := scripts.Record{
		Stamp:    scripts.NewStamp(),
		Identity: pick(w, w.env.Identity(), w.env.Identity(), w.env.RunID+"/ab12/77", "f00/ba4/7"),
		Masters:  pick(w, three, three, five), Next: pick(w, "", "", "", "g"), Epoch: pick(w, int64(0), 3, 3, 4),
		MaxTTL: pick(w, 20*time.Second, 30*time.Second), Quarantine: pick(w, 0, 0, 30*time.Second, time.Minute),
		Admitted: w.rnd.IntN(4) == 0, Since: w.now() - pick(w, 0, 45*second, 90*second, 90*second),
	}
	r.Unproven = !r.Admitted && w.rnd.IntN(3) == 0
	if r.Epoch > 0 {
		r.Raised, r.Final = w.now()-5*second, pick(w, int64(0), 2)
	}
	return r
}

// both runs one call on both sides. On the server, one transaction contains the call, the reads of the clock before
// and after it, and reads of every key.
func (w *twin) both(call *frame.Call, stamp string) {
	_, args := call.Args(stamp, false)
	w.op = fmt.Sprint(call.Script.Name, " ", args[1:])
	keys := allKeys()
	edges := w.edges(keys, args[2:])
	w.letPass(edges)
	send := func(command string, args ...any) {
		must.Do(w.t, w.Send(command, args...))
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
	sent := time.Now()
	answers, err := redis.Values(w.Do("EXEC"))
	if err != nil {
		w.t.Fatalf("step %d: %s failed: %v", w.step, w.op, err)
	}
	w.t0, w.t1 = micros(w.t, answers[0]), micros(w.t, answers[2])
	end := micros(w.t, answers[len(answers)-1])
	near := func(at int64) bool { return at+1000+w.slack() >= w.t0 && at-w.slack() <= end }
	if slices.ContainsFunc(edges, near) || !w.took(sent) {
		w.restart()
		return
	}

	nkeys, _ := strconv.Atoi(fmt.Sprint(args[1]))
	texts := make([]string, len(args)-2)
	for i, a := range args[2:] {
		texts[i] = fmt.Sprint(a)
	}
	reply := w.state.Eval(w.t0, w.env, call.Script, texts[:nkeys], texts[nkeys:])
	w.compare("reply", answers[1], reply)
	w.count(call, reply)
	for i, key := range keys {
		w.compareKey(key, answers[3+4*i:])
	}
}

// slow is the duration, in us, of a transaction that is not compared: the machine is busy.
const slow = 10_000

// took records the duration of a transaction that was sent at the time sent, and reports whether it may be compared.
func (w *twin) took(sent time.Time) bool {
	spent := time.Since(sent).Microseconds() + 2000
	if spent > slow {
		return false
	}
	w.longest = max(w.longest, spent)
	return true
}

// slack returns the permitted difference between the TTLs of a key on both sides, in us. The server reads its clock at
// some moment of a transaction. This applies to the transaction that sets the expiry, and to the one that reads the
// TTL.
func (w *twin) slack() int64 { return 2 * w.longest }

func allKeys() []string {
	keys := []string{prefix.Admission()}
	for _, name := range names {
		keys = append(keys, prefix.Lock(name), prefix.Queue(name), prefix.Waiters(name), prefix.Shares(name))
	}
	return keys
}
