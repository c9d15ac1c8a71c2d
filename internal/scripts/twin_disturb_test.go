package scripts_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// disturb changes keys directly, and not with the scripts, in the same way on both sides.
func (w *twin) disturb() {
	now, name := w.now(), w.name()
	key := pick(w, prefix.Lock(name), prefix.Lock(name), prefix.Shares(name), prefix.Admission(), prefix.Queue(name),
		prefix.Waiters(name))
	switch w.rnd.IntN(14) {
	case 10, 11, 12: // leases expire by the server's clock
		w.op = "PEXPIRE 60000 " + prefix.Lock(name)
		sent := time.Now()
		w.must("PEXPIRE", prefix.Lock(name), 60_000)
		w.state.Expire(w.now(), prefix.Lock(name), 60_000)
		if !w.took(sent) {
			w.restart()
		}
	case 13: // the deadline alone ends a lease
		if v := w.state.Look(now, prefix.Lock(name)); v.Type == reference.Hash {
			w.op = "PERSIST " + prefix.Lock(name)
			w.must("PERSIST", prefix.Lock(name))
			w.state.SetHash(prefix.Lock(name), v.Fields...)
		}
	case 0, 1:
		w.op = "DEL " + key
		w.must("DEL", key)
		w.state.Delete(now, key)
	case 2:
		w.op = "PEXPIRE 0 " + key
		w.must("PEXPIRE", key, 0)
		w.state.Expire(now, key, 0)
	case 3:
		text := pick(w, "", "12x", "-5", "1e3", " 7", "007", "9007199254740990", "9007199254740993",
			fmt.Sprint(now+20*second))
		lock, field := prefix.Lock(name), pick(w, scripts.FieldFence, scripts.FieldFence, scripts.FieldReads)
		if t := w.state.Look(now, lock).Type; t != reference.Hash {
			return
		}
		w.op = fmt.Sprintf("HSET %s %s %q", lock, field, text)
		w.must("HSET", lock, field, text)
		w.state.SetField(now, lock, field, text)
	case 4:
		record := w.record().String()
		text := pick(w, record, record, record, record, "v4 nonsense", "")
		w.op = fmt.Sprintf("SET admission %q", text)
		w.must("SET", prefix.Admission(), text)
		w.state.Set(now, prefix.Admission(), text, 0)
	case 5:
		w.op = "a list at " + key
		w.must("DEL", key)
		w.must("RPUSH", key, 1)
		w.state.SetOther(key)
	case 6:
		w.op = "a string at " + key
		w.must("SET", key, "17")
		w.state.Set(now, key, "17", 0)
	case 8: // keep only the record
		w.op = "DEL of all but the record"
		for _, key := range allKeys()[1:] {
			w.must("DEL", key)
			w.state.Delete(now, key)
		}
	case 9:
		w.manyShares(name)
	case 7: // a lock without a TTL, with fields that the scripts do not write
		fields := []reference.Field{{Name: grant(other, 1), Value: "1"}, {Name: grant(me, 1), Value: "2"}}[:1+w.rnd.IntN(2)]
		w.op = fmt.Sprint("a hash without a TTL ", fields)
		w.must("DEL", prefix.Lock(name))
		for _, f := range fields {
			w.must("HSET", prefix.Lock(name), f.Name, f.Value)
		}
		w.state.SetHash(prefix.Lock(name), fields...)
	}
}

// manyShares adds shares to a readers-writer lock: some valid shares, or more expired shares than one script removes.
func (w *twin) manyShares(name string) {
	lock, now := prefix.Shares(name), w.now()
	if v := w.state.Look(now, lock); v.Type != reference.SortedSet && v.Type != reference.None {
		return
	}
	n, ends := 3, now+30*second
	switch w.rnd.IntN(3) {
	case 0:
		n, ends = 520, now-second
	case 1:
		n = 120
	}
	w.op = fmt.Sprint(n, " shares until ", ends)
	for i := range n {
		id := scripts.ShareID("deaf", uint64(i), scripts.Reader, 0, "")
		must.Do(w.t, w.Send("ZADD", lock, ends+int64(i), id))
		w.state.SetScore(now, lock, id, ends+int64(i))
	}
	w.must("")
	sent := time.Now()
	w.must("PEXPIRE", lock, 40_000)
	w.state.Expire(w.now(), lock, 40_000)
	if !w.took(sent) {
		w.restart()
	}
}

// manyWaiters adds waiters to the front of a queue: a few without a subscriber, more dead waiters than one script
// drops, or some that are in only one of the two sets of the queue.
func (w *twin) manyWaiters() {
	name, now := w.name(), w.now()
	queue, waiters := prefix.Queue(name), prefix.Waiters(name)
	for _, key := range []string{queue, waiters} {
		if v := w.state.Look(now, key); v.Type != reference.SortedSet && v.Type != reference.None {
			return
		}
	}
	n, counts, sets := 9, now+30*second, []string{queue, waiters}
	switch w.rnd.IntN(6) {
	case 0:
		n, counts = 520, now-second
	case 1:
		sets = sets[:1]
	case 2:
		sets = sets[1:]
	case 3:
		n = 2
	case 4:
		n, counts = 3, now-second
	}
	w.op = fmt.Sprint(n, " waiters until ", counts, " in ", strings.Join(sets, " and "))
	for i := range n {
		id := scripts.NewTicket(scripts.Plain, "deaf", uint64(i), "", 1_600_000_000_000_000, 0).Waiter()
		for _, key := range sets {
			score := counts
			if key == queue {
				score = -9
			}
			must.Do(w.t, w.Send("ZADD", key, score, id))
			w.state.SetScore(now, key, id, score)
		}
	}
	w.must("")
}
