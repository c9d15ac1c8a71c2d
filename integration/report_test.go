package integration

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/internal/must"
)

// reportEnv names an environment variable with a file. Each scenario appends to the file its number and its row of
// the table in faults.md; see report.sh.
const reportEnv = "REDLOCK_TEST_REPORT"

// A summary describes the effects of a scenario on users of locks.
type summary struct {
	calls, granted int           // calls for names that no other client uses, during the fault
	median, worst  time.Duration // durations of the granted calls
	failed         int           // failed calls of any kind for those names
	lost           int           // locks that were held since before the fault and were lost
	held           int           // number of all holds of the run
	sample         string        // the most frequent error for names that only one client uses
	calm           time.Duration // the median before the fault
	gap            time.Duration // longest time between two checks of a long lock
}

// busy reports whether the machine was so busy that lost locks are not a failure: the processes or the masters did not
// run for a large part of the TTL.
func (s summary) busy(ttl time.Duration, links bool) bool {
	return s.calm > 5*time.Millisecond || s.gap > ttl/4 || !links && s.worst > ttl/4
}

func summarise(events []history.Event, from, to int64) summary {
	var s summary
	var waits, calm []time.Duration
	looked := make(map[string]int64)
	texts, counts := make(map[string]string), make(map[string]int)
	for _, e := range events {
		own, long := strings.HasPrefix(e.Name, ownName), strings.HasPrefix(e.Name, longName)
		if e.Op == history.Lock && e.OK() {
			s.held++
		}
		if long && e.Op == history.Unlock && e.Kind == "lost" && e.Call > from {
			s.lost++
		}
		if e.Op == history.Alive && long {
			if last, ok := looked[e.Hold]; ok && e.Call > from {
				s.gap = max(s.gap, time.Duration(e.Call-last))
			}
			looked[e.Hold] = e.Call
		}
		if own && e.Op == history.Lock && e.OK() && e.Ret < from {
			calm = append(calm, time.Duration(e.Ret-e.Call))
		}
		if e.Ret < from || e.Call > to {
			continue
		}
		if own && e.Op == history.Lock {
			s.calls++
			if e.OK() {
				waits = append(waits, time.Duration(e.Ret-e.Call))
			}
		}
		if own && !e.OK() && e.Ret <= to {
			s.failed++
		}
		if (own || long) && !e.OK() {
			texts[e.Kind] = e.Err
			counts[e.Kind]++
		}
	}
	s.granted = len(waits)
	s.median, s.worst = medianAndWorst(waits)
	s.calm, _ = medianAndWorst(calm)
	most := 0
	for kind, n := range counts {
		if n > most {
			most, s.sample = n, texts[kind]
		}
	}
	return s
}

func medianAndWorst(list []time.Duration) (median, worst time.Duration) {
	if len(list) == 0 {
		return 0, 0
	}
	slices.Sort(list)
	return list[len(list)/2], list[len(list)-1]
}

// mustKeep fails the test if locks were lost. If calls is set, it also fails the test if calls failed.
func (x *deployment) mustKeep(s summary, calls bool) {
	x.Helper()
	if s.lost == 0 && (!calls || s.failed == 0) {
		return
	}
	text := fmt.Sprintf("%d locks were lost, and %d calls failed, although a majority of the masters was healthy: %s",
		s.lost, s.failed, s.sample)
	if s.busy(x.args.TTL, x.links != nil) {
		x.Logf("%s (ignored, machine too busy: a call took %v before the fault, and %v passed between two checks of a lock)",
			text, s.calm, s.gap)
		return
	}
	x.Error(text)
}

// report logs the effect on users. It fails the test if locks were lost although the scenario does not allow that.
func (x *deployment) report() {
	x.Helper()
	s := summarise(x.history.Events, x.began, x.ended)
	if s.calls == 0 {
		x.Errorf("no call was made during the fault")
		return
	}
	x.Logf("%d of %d calls got the lock, in %v (median), %v (worst); %d locks lost; %d holds in total; the fault took "+
		"%v; most frequent error: %s",
		s.granted, s.calls, s.median.Round(10*time.Microsecond), s.worst.Round(100*time.Microsecond), s.lost, s.held,
		time.Duration(x.ended-x.began).Round(time.Millisecond), s.sample)
	if x.sc.steady || x.sc.minority {
		x.mustKeep(s, x.sc.minority)
	}
	path := os.Getenv(reportEnv)
	if path == "" || x.Failed() {
		return
	}
	row := fmt.Sprintf("%02d | %s | %d of %d | %s | %s | %d of %d | %s |\n", x.sc.number, x.sc.name, s.granted, s.calls,
		milliseconds(s.median), milliseconds(s.worst), s.lost, processes, shorten(s.sample))
	f := must.Get(os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))(x)
	defer f.Close()
	must.Get(f.WriteString(row))(x)
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

var (
	spaces    = regexp.MustCompile(`\s+`)
	addresses = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

// shorten returns an error text as one line for the table. If the text lists several masters, shorten keeps only the
// first, without its address.
func shorten(text string) string {
	if text == "" {
		return ""
	}
	text = addresses.ReplaceAllString(spaces.ReplaceAllString(text, " "), "<master>")
	text = strings.ReplaceAll(text, "|", "/")
	const listed = "; <master>: "
	if first := strings.Index(text, listed); first >= 0 {
		if second := strings.Index(text[first+len(listed):], listed); second >= 0 {
			text = text[:first+len(listed)+second] + "; ..."
		}
	}
	if len(text) > 300 {
		text = text[:300] + "..."
	}
	return "`" + text + "`"
}
