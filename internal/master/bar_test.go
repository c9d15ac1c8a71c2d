package master_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/master"
	"github.com/redlock-go/redlock/internal/scripts"
)

// TestBarsAreKeptForTheirTime: whatever was written before, and however the clock was set meanwhile, who has just been granted a
// name, or has barred a ballot, finds it remembered for as long as it asked for.
func TestBarsAreKeptForTheirTime(t *testing.T) {
	const lock, bar, marker = "redlock:{a}:lock", "redlock:{a}:bar", "redlock:marker"
	const queue, alive = "redlock:{a}:queue", "redlock:{a}:alive"
	window := scripts.UsualWindow.Microseconds()
	const halfHour = int64(30 * time.Minute / time.Microsecond)
	inPlace, inPlaceByRelease := 0, 0
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var s master.State
		now, top := now, int64(0)
		if seed%4 == 0 { // a poisoned bar
			top = now + 10*24*2*halfHour
			s.Set(now, bar, fmt.Sprint(top), 5_430_000)
		}
		for step := range 300 {
			switch rnd.IntN(12) {
			case 0:
				now += rnd.Int64N(int64(2 * time.Hour / time.Microsecond))
			case 5, 6: // near the end of a half hour
				now = (now+window)/halfHour*halfHour + halfHour + []int64{-window, window - 1, rnd.Int64N(2*window) - window}[rnd.IntN(3)]
			case 1:
				now -= rnd.Int64N(2 * window) // somebody sets the clock
			case 2, 3, 4:
				now += rnd.Int64N(int64(20 * time.Minute / time.Microsecond))
			default:
				now += rnd.Int64N(int64(5 * time.Second / time.Microsecond))
			}
			if _, there := s.Get(now, bar); !there {
				top = 0
			}
			ballot := now + []int64{-window, window, rnd.Int64N(2*window) - window}[rnd.IntN(3)]
			if ballot <= top || rnd.IntN(20) == 0 {
				ballot = top + 1 // also beyond the window
			}
			id, text := fmt.Sprint("me:", step), fmt.Sprint(ballot)
			keep := scripts.Millis(scripts.UsualBarTTL)
			before := s.TTL(now, bar)
			switch rnd.IntN(6) {
			case 0: // a message that comes after its release
				args := []string{"", id, text}
				if rnd.IntN(2) == 0 {
					keep = 60_000
					args = append(args, "A 15000000 60000 500")
				}
				was, _ := s.Get(now, bar)
				if _, out := s.Eval(now, master.Env{}, scripts.Release, []string{lock, bar, queue, alive, marker}, args); len(out) != 0 {
					t.Fatal(out)
				}
				if is, _ := s.Get(now, bar); is == was {
					continue
				}
			case 1: // one that waits, and is given the name by a release
				waiter := fmt.Sprintf(">%016d:me:%d", now, step)
				s.Set(now, marker, "m", 0)
				s.SetHash(lock, master.Field{Name: "holder", Value: "1"})
				ask := []string{"m", id, "1000", text, "", text, waiter, "0", "0", "20000"}
				if reply, _ := s.Eval(now, master.Env{}, scripts.Acquire, []string{lock, bar, marker, queue, alive}, ask); reply == int64(1) {
					t.Fatal("a name that is held was granted")
				}
				now += []int64{0, rnd.Int64N(window), -rnd.Int64N(window)}[rnd.IntN(3)]
				before = s.TTL(now, bar)
				args := []string{"m", "holder", fmt.Sprint(max(0, ballot-1-[]int64{0, ballot, rnd.Int64N(2 * halfHour)}[rnd.IntN(3)]))}
				if rnd.IntN(4) == 0 {
					keep = 3 * 3_600_000
					args = append(args, "A 15000000 10800000 500")
				}
				s.Eval(now, master.Env{Hears: func(string) int { return 1 }}, scripts.Release, []string{lock, bar, queue, alive, marker}, args)
				granted := s.Hash(now, lock)[id] != ""
				for _, key := range []string{lock, queue, alive} {
					s.Delete(now, key)
				}
				if !granted {
					continue
				}
				if s.TTL(now, bar) == before {
					inPlaceByRelease++
				}
			default:
				args := []string{"", id, "1000", text}
				switch rnd.IntN(5) {
				case 0:
					keep = 60_000
					args = append(args, "15000000 60000")
				case 1:
					keep = 3 * 3_600_000
					args = append(args, "15000000 10800000")
				case 2:
					args = append(args, "15000000 3600000 h 1 0")
				}
				reply, _ := s.Eval(now, master.Env{}, scripts.Acquire, []string{lock, bar, marker}, args)
				s.Delete(now, lock)
				if reply != int64(1) {
					continue
				}
			}
			top = max(top, ballot)
			left := s.TTL(now, bar)
			if left < keep {
				t.Fatalf("seed %d, step %d: the bar is kept for %d ms, want %d", seed, step, left, keep)
			}
			if left == before {
				inPlace++
			}
		}
	}
	if inPlace < 1000 || inPlaceByRelease < 300 {
		t.Errorf("%d bars were written in place, %d of them by releases: the test shows little", inPlace, inPlaceByRelease)
	}
}
