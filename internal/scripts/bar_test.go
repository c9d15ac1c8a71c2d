package scripts_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// TestABarIsWrittenInPlaceOnlyWhereItKeepsItsTime: an acquire leaves a bar the time that it has only where that is surely
// an hour or more, told by the text alone.
func TestABarIsWrittenInPlaceOnlyWhereItKeepsItsTime(t *testing.T) {
	const halfHour = int64(30 * time.Minute / time.Microsecond)
	const full, hour = 5_430_000, 3_600_000 // ms
	unusual := scripts.NewFleet(prefix, window, 2*time.Hour, 0)
	onBoth(t, func(t *testing.T, c *client) {
		now := c.now()
		if now%halfHour == 0 {
			now++ // so that the microsecond before is of the same half hour
		}
		for i, one := range []struct {
			why    string
			bar    string // what stands there, with 4000 s left; "" nothing
			fleet  scripts.Fleet
			ballot int64
			mode   scripts.Mode
			text   string // the bar after it
			least  int64  // what it has left at the least, and 5 s more at the most
		}{
			{"same half hour", fmt.Sprint(now - 1), fleet, now, scripts.ModeAcquire, fmt.Sprint(now), 3_995_000},
			{"half an hour ago", fmt.Sprint(now - halfHour), fleet, now, scripts.ModeAcquire, fmt.Sprint(now), full - 5000},
			{"the last of another half hour", fmt.Sprint(now - now%halfHour - 1), fleet, now, scripts.ModeAcquire, fmt.Sprint(now), full - 5000},
			{"nothing", "", fleet, now, scripts.ModeAcquire, fmt.Sprint(now), full - 5000},
			{"written for another time", fmt.Sprint("0", now-1), fleet, now, scripts.ModeAcquire, fmt.Sprint(now), full - 5000},
			{"short", "17", fleet, now, scripts.ModeAcquire, fmt.Sprint(now), full - 5000},
			{"kept for another time", fmt.Sprint(now - 1), unusual, now, scripts.ModeAcquire, fmt.Sprint("0", now), 2*hour - 5000},
			{"heal", fmt.Sprint(now - 1), fleet, now, scripts.ModeHeal, fmt.Sprint("0", now), hour - 5000},
			{"beyond the window", fmt.Sprint(now - now%halfHour + 10*halfHour), fleet, now - now%halfHour + 10*halfHour + 1, scripts.ModeAcquire,
				fmt.Sprint("0", now-now%halfHour+10*halfHour+1), hour - 5000},
		} {
			name := fmt.Sprint("n", i)
			if one.bar != "" {
				c.must("SET", prefix.Bar(name), one.bar, "PX", "4000000")
			}
			call := one.fleet.AcquireCall(hold(name, "me:1"), one.mode, ttl, one.ballot, one.ballot, 1)
			for _, when := range []string{"first", "repeated"} {
				c.want(scripts.Granted, call)
				left := c.must("PTTL", prefix.Bar(name)).(int64)
				if text := c.text(prefix.Bar(name)); text != one.text || left < one.least || left > one.least+5000 {
					t.Errorf("%s, %s: the bar is %s for %d ms, want %s for %d to %d", one.why, when, text, left, one.text, one.least, one.least+5000)
				}
			}
			if v := c.want(scripts.Held, acquire(hold(name, "other:1"), now)); v.Bar != one.ballot {
				t.Errorf("%s: the bar is told as %d, want %d", one.why, v.Bar, one.ballot)
			}
		}
		for _, bar := range []string{"", "0", fmt.Sprint(now - 1), fmt.Sprint("0", now-1)} { // a release that bars writes no bar that is let be
			if bar != "" {
				c.must("SET", prefix.Bar("r"), bar, "PX", "4000000")
			}
			c.release(hold("r", "me:1"), now, false)
			left := c.must("PTTL", prefix.Bar("r")).(int64)
			if text := c.text(prefix.Bar("r")); text != fmt.Sprint("0", now) || left < hour-5000 || left > hour {
				t.Errorf("a release makes the bar %q %s for %d ms", bar, text, left)
			}
			c.must("DEL", prefix.Bar("r"))
		}
		if !strings.Contains(scripts.Many.Text, "SETRANGE") {
			t.Error("runs of many do not write in place")
		}
	})
}

// TestAReleaseWritesTheBarOfAHoldAsAnAcquireDoes: in place under the same conditions, told by the bar that stood there.
func TestAReleaseWritesTheBarOfAHoldAsAnAcquireDoes(t *testing.T) {
	const halfHour = int64(30 * time.Minute / time.Microsecond)
	const full, hour = 5_430_000, 3_600_000 // ms
	unusual := scripts.NewFleet(prefix, window, 2*time.Hour, 0)
	for _, one := range []struct {
		why   string
		bar   func(first int64) string // what stands there, with 4000 s left; "" nothing
		fleet scripts.Fleet
		zero  string // before the ballot in the bar after it
		least int64  // what it has left at the least, and 5 s more at the most
	}{
		{"same half hour", func(first int64) string { return fmt.Sprint(first - 1) }, fleet, "", 3_995_000},
		{"the last of another half hour", func(first int64) string { return fmt.Sprint(first - first%halfHour - 1) }, fleet, "", full - 5000},
		{"nothing", func(int64) string { return "" }, fleet, "", full - 5000},
		{"written for another time", func(first int64) string { return fmt.Sprint("0", first-1) }, fleet, "", full - 5000},
		{"short", func(int64) string { return "17" }, fleet, "", full - 5000},
		{"kept for another time", func(first int64) string { return fmt.Sprint(first - 1) }, unusual, "0", 2*hour - 5000},
		{"the usual times, told", func(first int64) string { return fmt.Sprint(first - 1) }, fleet.Reserving(time.Second), "0", hour - 5000},
	} {
		t.Run(one.why, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *client) {
				h := newHanding(c, "w")
				w := ask{locker: "w", first: 1000, offer: time.Minute}
				for at := (h.start + w.first) % halfHour; at == 0 || at > halfHour-17; at = (h.start + w.first) % halfHour {
					w.first += 16 // the block lies in one half hour, and so does the ballot before it
				}
				first := h.start + w.first
				h.queue(w)
				c.must("DEL", prefix.Bar("a"))
				if bar := one.bar(first); bar != "" {
					c.must("SET", prefix.Bar("a"), bar, "PX", "4000000")
				}
				// That what the release bars is of the same half hour says nothing of what stands there.
				h.perform(one.fleet.ReleaseCall(hold("a", "holder:1"), first-1, false, scripts.Advance), h.marker)
				h.wantGiven(w)
				left := c.must("PTTL", prefix.Bar("a")).(int64)
				if text := c.text(prefix.Bar("a")); text != fmt.Sprint(one.zero, first+16) || left < one.least || left > one.least+5000 {
					t.Errorf("the bar is %s for %d ms, want %s%d for %d to %d", text, left, one.zero, first+16, one.least, one.least+5000)
				}
			})
		})
	}
}
