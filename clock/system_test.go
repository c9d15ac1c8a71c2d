package clock

import (
	"testing"
	"time"
)

// A machineOf is a machine whose clocks the test sets, in nanoseconds.
type machineOf struct {
	monotonic, wall, boot int64
	bootReads             int
}

func (m *machineOf) system() *system {
	return &system{
		read: func() (int64, int64) { return m.monotonic, m.wall },
		boot: func() (int64, bool) { m.bootReads++; return m.boot, true },
	}
}

func (m *machineOf) pass(monotonic, wall, boot time.Duration) {
	m.monotonic += int64(monotonic)
	m.wall += int64(wall)
	m.boot += int64(boot)
}

// H14: the boot clock is read only if the wall clock has moved relative to the monotonic clock. Even so, no
// suspension is missed.
func TestSuspendedTimeCounts(t *testing.T) {
	for _, c := range []struct {
		name                  string
		monotonic, wall, boot time.Duration // how far each clock advances
		reads                 int           // how often the boot clock is read
	}{
		{"all agree", time.Second, time.Second, time.Second, 0},
		{"suspended", time.Second, 61 * time.Second, 61 * time.Second, 1},
		{"suspended too briefly to notice", time.Second, time.Second + 50*time.Microsecond, time.Second, 0},
		{"suspended, wall clock set back by a second", 0, 59 * time.Second, time.Minute, 1},
		{"suspended, wall clock set back by an hour", 0, -59 * time.Minute, time.Minute, 1},
		{"wall clock set forward", time.Second, time.Hour, time.Second, 1},
		{"wall clock set back", time.Second, -time.Hour, time.Second, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := machineOf{monotonic: 5, wall: 1_700_000_000e9, boot: 7e9}
			s := m.system()
			from := s.now()
			m.bootReads = 0
			m.pass(c.monotonic, c.wall, c.boot)
			if got := time.Duration(s.now().Steady() - from.Steady()); got != c.boot {
				t.Errorf("the steady clock advanced by %v, want %v", got, c.boot)
			}
			s.now()
			if m.bootReads != c.reads {
				t.Errorf("the boot clock was read %d times, want %d", m.bootReads, c.reads)
			}
		})
	}
}

// H149: a machine is suspended for 9.9 s. Linux measures a suspension in whole seconds, here 9 s. The missing 0.9 s
// must not make locks last longer.
func TestSuspensionMeasuredInWholeSecondsCountsInFull(t *testing.T) {
	m := machineOf{monotonic: 5, wall: 1_700_000_000e9, boot: 7e9}
	s := m.system()
	from := s.now()
	for slept := time.Duration(0); slept < time.Minute; slept += 9900 * time.Millisecond {
		if passed := s.now().Sub(from); passed < slept {
			t.Errorf("Sub returned %v after %v of suspension", passed, slept)
		}
		m.pass(0, 9*time.Second, 9*time.Second)
	}
}

func TestShortSuspensionsAddUp(t *testing.T) {
	m := machineOf{monotonic: 5, wall: 1_700_000_000e9, boot: 7e9}
	s := m.system()
	from := s.now()
	const each, times = 50 * time.Microsecond, 1000
	for range times {
		m.pass(0, each, each)
		s.now()
	}
	if got := time.Duration(s.now().Steady() - from.Steady()); got < each*times-time.Duration(precision) {
		t.Errorf("only %v of %v were measured", got, each*times)
	}
}

func TestWithoutBootClock(t *testing.T) {
	m := machineOf{monotonic: 5, wall: 1_700_000_000e9}
	s := m.system()
	s.boot = func() (int64, bool) { return 0, false }
	from := s.now()
	m.pass(time.Second, time.Hour, 0)
	to := s.now()
	if to.Steady()-from.Steady() != int64(time.Second) || to.Sub(from) != time.Hour {
		t.Errorf("%v passed on the steady clock; Sub returned %v", time.Duration(to.Steady()-from.Steady()), to.Sub(from))
	}
}

// A reading is repeated if the thread was preempted between the reads of two clocks.
func TestPreemptedReadingIsRepeated(t *testing.T) {
	m := machineOf{monotonic: 5, wall: 1_700_000_000e9, boot: 7e9}
	s := m.system()
	s.now()
	from := m.boot - m.monotonic
	m.pass(0, time.Minute, time.Minute)
	preempted := 0
	s.boot = func() (int64, bool) {
		boot := m.boot
		if preempted++; preempted < 3 {
			m.pass(time.Second, time.Second, time.Second) // the thread is preempted before it reads the monotonic clock again
		}
		return boot, true
	}
	s.now()
	if got := time.Duration(s.suspended.Load() - from); got != time.Minute {
		t.Errorf("the suspended time is %v, want a minute", got)
	}
}

func TestSystemClockIsTheBootClock(t *testing.T) {
	want, ok := readBoot()
	if !ok {
		t.Skip("this system has no boot clock")
	}
	if got := machine.now().boot; got < want-precision {
		t.Errorf("the clock is %v behind the boot clock", time.Duration(want-got))
	}
}
