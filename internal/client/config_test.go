package client

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/property"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// H10, H11, H13: with any accepted options, a hold that is won immediately is valid: its validity is positive, is at
// least the minimum, and ends before the TTL on the masters.
func TestAcceptedOptionsLeaveValidity(t *testing.T) {
	accepted := 0
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		span := func() time.Duration {
			return time.Duration(math.Exp(r.Float64()*math.Log(math.MaxInt64))) - time.Duration(r.IntN(2))
		}
		c := defaults()
		c.Defaults.TTL, c.MaxTTL = span(), span()
		if r.IntN(2) == 0 {
			c.Defaults.Least = span()
		}
		if r.IntN(2) == 0 {
			c.MaxTTL, c.Unguarded = 0, true
		}
		if err := c.check(); err != nil {
			if !errors.Is(err, fault.ErrInvalid) {
				t.Error(err)
			}
			return
		}
		accepted++
		left := c.Defaults.TTL - lease.Drift(c.Defaults.TTL)
		if left <= 0 || left < c.checked.Least || left > c.Defaults.TTL || c.checked.Least <= 0 {
			t.Errorf("%+v leaves %v of a TTL of %v, at least %v is wanted", c.Defaults, left, c.Defaults.TTL, c.checked.Least)
		}
		if c.MaxTTL > 0 && c.Defaults.TTL > c.MaxTTL {
			t.Errorf("the TTL %v is above the max TTL %v", c.Defaults.TTL, c.MaxTTL)
		}
	})
	if !property.Repeats() && long.Enabled() && accepted < property.Cases/100 {
		t.Errorf("%d of %d configurations were accepted, which is too few", accepted, property.Cases)
	}
}

// A call that turns a setting of the Locker off gets what that setting has excluded.
func TestOptionsOfACallChangeWhatTheLockerSays(t *testing.T) {
	c := &Client{cfg: defaults()}
	s := &c.cfg.Defaults
	s.MinHold, s.Linger = time.Second, time.Minute
	must.Do(t, c.cfg.check())
	locker, err := Apply(c, []CallOption(nil))
	if err != nil || !locker.Fair || locker.Handoffs != 0 || locker.Linger != 0 {
		t.Errorf("with a minimum hold: %+v, %v", locker, err)
	}
	call, err := Apply(c, []CallOption{CallOptionFunc(func(s *Settings) { s.Tries = 3 })})
	if err != nil || call.MinHold != time.Second || call.Tries != 3 {
		t.Errorf("with a minimum hold and a limit of tries: %+v, %v", call, err)
	}
	call, err = Apply(c, []CallOption{CallOptionFunc(func(s *Settings) { s.MinHold = 0 })})
	if err != nil || call.Fair || call.Handoffs != DefaultHandoffs || call.Linger != time.Minute {
		t.Errorf("without the minimum hold of the Locker: %+v, %v", call, err)
	}
}

// The label of a process is valid for host names of any length and content.
func TestDefaultLabelFits(t *testing.T) {
	for _, host := range []string{"", "h", strings.Repeat("h", 63), strings.Repeat("h", 255), "a\nb"} {
		if got := labelOfProcess(host, 4_194_304); scripts.CheckLabel(got) != nil || !strings.HasSuffix(got, "/4194304") {
			t.Errorf("the label for the host %q is %q", host, got)
		}
	}
	if got := labelOfProcess("web-1", 12); got != "web-1/12" {
		t.Errorf("the label is %q, want web-1/12", got)
	}
}

const ms = time.Millisecond

// The default pauses grow by half from 10 ms to 250 ms, plus a random part of at most 20 ms.
func TestDefaultPauses(t *testing.T) {
	for n, least := range map[int]time.Duration{
		1: 10 * ms, 2: 15 * ms, 3: 22500 * time.Microsecond, 9: 250 * ms, 4000: 250 * ms,
	} {
		if got := defaultPause(n); got < least || got > least+20*ms {
			t.Errorf("retry %d: %v, want %v to %v", n, got, least, least+20*ms)
		}
	}
}

// H41: pauses are random, so that calls that were refused at the same time do not retry at the same time.
func TestRandomPartSpreads(t *testing.T) {
	seen := make(map[time.Duration]bool)
	cfg := defaults()
	for range 100 {
		seen[cfg.Defaults.Poll(1)] = true
	}
	if len(seen) < 50 {
		t.Errorf("100 calls paused for %d different times", len(seen))
	}
}
