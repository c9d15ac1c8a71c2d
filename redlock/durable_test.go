package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// noticed is how long a client may need to notice that an append-only file was switched off: a heartbeat.
const noticed = 3 * time.Second

// file switches the append-only files of masters.
func (w *cluster) file(state string, which ...int) {
	w.each(func(_ int, m *memory.Master) { m.SetAppendOnly(state) }, which...)
}

// setConfig sets what all masters report for a setting.
func (w *cluster) setConfig(name, value string) {
	w.each(func(_ int, m *memory.Master) { m.SetConfig(name, value) })
}

// H162: a master that is declared durable, but whose settings contradict, is treated like any other: after a restart it
// is in quarantine, also if the restart has kept its data. One warning names the setting.
func TestContradictedMastersAreNotDurable(t *testing.T) {
	for setting, wrong := range map[string]string{
		"appendonly": "no", "appendfsync": "everysec", "no-appendfsync-on-rewrite": "yes",
	} {
		subtest(t, setting, 3, func(w *cluster) {
			w.setConfig(setting, wrong)
			var book logbook
			l := w.locker(redlock.WithAllMastersDurable(), book.option())
			after(time.Minute)
			w.each(func(i int, m *memory.Master) {
				if strings.Contains(recordOf(m), "durable=") {
					w.Errorf("the record of master %d calls it durable: %s", i, recordOf(m))
				}
			})
			book.wants(w, 1, "declared durable")
			book.wants(w, 1, "declared durable", setting+" "+wrong, "master-1:6379, master-2:6379, master-3:6379")
			must(l.Lock(w.Context(), "a", redlock.WithTTL(20*time.Second)))(w)
			l = w.locker(redlock.WithAllMastersDurable())
			w.restart(true)
			w.setConfig(setting, wrong)
			after(2 * time.Second)
			for _, m := range admin.Of(l).Masters() {
				equal(w, m.State, "quarantine", m.Addr)
			}
		})
	}
}

// H162: the append-only files of durable masters are switched off while clients run. The masters crash, and start again
// from their old files, which call them durable. No master grants or keeps a lock that its file lacks, from the moment
// at which the clients notice the switch, so no name has two holders.
func TestDurableMastersWhoseFilesAreSwitchedOff(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var book logbook
		l := w.locker(redlock.WithAllMastersDurable(), book.option())
		after(5 * time.Second) // until the records say that the masters are durable
		kept := must(l.Lock(w.Context(), "kept", redlock.WithTTL(20*time.Second)))(w)
		after(time.Second)
		w.file("no")
		late := must(l.Lock(w.Context(), "late", redlock.WithTTL(20*time.Second)))(w) // before the client can notice
		after(noticed)
		w.isError(kept.Err(), redlock.ErrLost)
		w.isError(late.Err(), redlock.ErrLost)
		fresh := w.locker(redlock.WithAllMastersDurable())
		for _, client := range []*redlock.Locker{l, fresh} {
			w.says(errOf(client.TryLock(w.withTimeout(time.Minute), "a")), redlock.ErrNoQuorum, "appendonly no",
				"`CONFIG SET appendonly yes`")
		}
		after(time.Second)
		book.wants(w, 1, "declared durable")
		book.wants(w, 1, "declared durable", "appendonly no")
		w.restart(true)
		after(2 * time.Second)
		w.noError(fresh.Do(w.Context(), "late", nothing, redlock.WithTries(1))) // its holder has lost it before
	})
}

// H162: a client that does not declare the master durable does not count it either, while its record calls it durable
// and its file is off: a client that declares it would believe the old file. When an operator has replaced the record,
// the master votes again, after a quarantine.
func TestSwitchedFileCountsForNoClient(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		declares, other := w.locker(redlock.WithAllMastersDurable()), w.cutOff(2)
		after(5 * time.Second)
		w.file("no", 0)
		after(noticed)
		k, err := other.TryLock(w.Context(), "a", redlock.WithTTL(20*time.Second))
		w.says(err, redlock.ErrNoQuorum, "appendonly no", "redlock quarantine --master "+w.masters.Master(0).Addr())
		w.restart(true, 0) // with the old file
		after(2 * time.Second)
		if k != nil {
			_ = w.wantOneHolder(k, declares)
		}
		w.file("no", 0)
		after(noticed)
		w.must(admin.Of(other.Locker).Quarantine(w.Context(), w.masters.Master(0).Addr()))
		after(time.Minute)
		for _, l := range []*redlock.Locker{declares, other.Locker} {
			equal(w, admin.Of(l).Masters()[0].State, redlockinfo.StateVoting, "after the quarantine")
		}
	})
}

// H162: a switch of a minority costs no lock. The master votes again when its file is on and complete: until then the
// file is the old one.
func TestSwitchedFileMustBeComplete(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker(redlock.WithAllMastersDurable())
		after(5 * time.Second)
		k := must(l.Lock(w.Context(), "a"))(w)
		states := func(when string, want redlockinfo.State) {
			w.Helper()
			after(noticed)
			equal(w, admin.Of(l).Masters()[1].State, want, when)
		}
		w.file("no", 1)
		states("off", "blocked")
		w.file("rewriting", 1)
		states("on, but not complete", "blocked")
		w.file("yes", 1)
		states("complete", "voting")
		after(30 * time.Second)
		w.wantHeld(k, 3)
		w.restart(true)
		after(2 * time.Second)
		w.wantHeld(k, 3)
		w.noError(k.Unlock(w.Context()))
	})
}

// H162: a master whose file is off keeps no lock, however often the lock is extended: when a second master is switched
// off, the lock is on one that remembers it, and ends.
func TestLocksOnSwitchedFilesDoNotCount(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker(redlock.WithAllMastersDurable())
		after(5 * time.Second)
		k := must(l.Lock(w.Context(), "a"))(w)
		w.file("no", 0)
		after(20 * time.Second)
		w.wantHeld(k, 2)
		w.file("no", 1)
		after(noticed)
		w.isError(k.Err(), redlock.ErrLost)
	})
}

// H162: a master whose settings cannot be read is believed, with one warning.
func TestDurableMastersThatCannotBeChecked(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		w.each(func(_ int, m *memory.Master) { m.RefuseCommand("CONFIG GET", "NOPERM no permission") })
		var book logbook
		l := w.locker(redlock.WithAllMastersDurable(), book.option())
		after(5 * time.Second)
		k := must(l.Lock(w.Context(), "a"))(w)
		w.restart(true)
		after(20 * time.Second)
		w.wantHeld(k, 3)
		w.noError(k.Unlock(w.Context()))
		book.wants(w, 1, "declared durable")
		book.wants(w, 1, "declared durable", "cannot be read", "appendfsync always")
	})
}
