package redlock_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// guardTime is the max TTL of deployments whose quarantines a test waits for.
const guardTime = 3 * time.Second

// thief tries to acquire the name of lock until the validity of lock has expired, even if the loss is reported earlier.
// It reports whether it got the name before that: for a holder that does not learn of the loss, that means two holders
// at once.
func thief(t *testing.T, l *redlock.Locker, lock *redlock.Lock, until time.Time) (tries int, twoHolders bool) {
	t.Helper()
	if left := time.Until(until); left < guardTime/10 {
		t.Fatalf("this machine is too slow for the test: %v of validity left", left)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(until) {
		stolen, err := l.TryLock(bounded(t), lock.Name())
		tries++
		if err == nil {
			twoHolders = time.Now().Before(until)
			// The cause may be detected just now, and end the connections that carry the release.
			if err := stolen.Unlock(bounded(t)); err != nil && !errors.Is(err, redlock.ErrLost) &&
				!errors.Is(err, redlock.ErrNoQuorum) {
				t.Error(err)
			}
			return tries, twoHolders
		}
		<-tick.C
	}
	return tries, false
}

var untilPattern = regexp.MustCompile(`quarantine until (\S+ UTC) by its clock, since `)

// quarantined checks that TryLock fails because masters are in quarantine, and returns the longest time in the text.
func quarantined(t *testing.T, l *redlock.Locker, masters ...int) time.Duration {
	t.Helper()
	for _, i := range masters {
		stateOf(t, l, i, "quarantine")
	}
	_, err := l.TryLock(bounded(t), "another name")
	if !errors.Is(err, redlock.ErrQuarantine) || !errors.Is(err, redlock.ErrNoQuorum) {
		t.Fatalf("%v, want ErrNoQuorum for the quarantine", err)
	}
	longest := time.Duration(0)
	now := time.Now().UTC()
	for _, found := range untilPattern.FindAllStringSubmatch(err.Error(), -1) {
		until := must[time.Time](t)(time.Parse("15:04:05 UTC", found[1]))
		until = time.Date(now.Year(), now.Month(), now.Day(), until.Hour(), until.Minute(), until.Second(), 0, time.UTC)
		if until.Before(now.Add(-time.Hour)) { // the time is tomorrow's
			until = until.AddDate(0, 0, 1)
		}
		longest = max(longest, until.Sub(now))
	}
	if longest == 0 || !strings.Contains(err.Error(), "Admit") {
		t.Errorf("the text lacks the time or the remedy: %v", err)
	}
	return longest
}

// Admit works on masters that were flushed since this Locker last used them, and that the Locker still counts as
// voting.
func TestAdmitNowLooksBeforeItBelievesThatAMasterVotes(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	idle := f.admitted()
	for i := range 3 {
		f.do(i, "FLUSHALL")
		if m := idle.Masters()[i]; m.State != "voting" {
			t.Fatalf("master %d is %q: want an idle Locker", i, m.State)
		}
	}
	f.admit(idle)
	for i := range 3 {
		if text := f.record(i); !strings.Contains(text, "state=admitted") {
			t.Errorf("master %d has the record %q", i, text)
		}
	}
}

// An invalid value is refused before anything is written.
func TestTheGuardTimeIsNotLoweredByAccident(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	l := f.admitted(redlock.WithMaxTTL(time.Minute), redlock.WithTTL(2*time.Second))
	records := func() (all string) {
		for i := range f.servers {
			all += f.record(i)
		}
		return all
	}
	before := records()
	for name, g := range map[string]time.Duration{
		"smaller": 30 * time.Second, "zero": 0, "below a millisecond": time.Minute + 1, "huge": 1000 * time.Hour,
		"above the default repl-backlog-ttl": 2 * time.Hour,
	} {
		if err := l.Admin().RaiseMaxTTL(bounded(t), g); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalidOption", name, err)
		}
	}
	err := f.locker(redlock.WithoutRestartGuard()).Admin().RaiseMaxTTL(bounded(t), time.Minute)
	if !errors.Is(err, redlock.ErrInvalid) {
		t.Errorf("with the guard off: %v", err)
	}
	if now := records(); now != before {
		t.Errorf("the records are %q, were %q", now, before)
	}
}
