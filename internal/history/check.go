package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Never is the return time of an operation that is not known to have ended.
const Never = math.MaxInt64

// A Hold is one acquisition as seen by its holder.
type Hold struct {
	Name, ID string
	Token    int64
	Call     int64 // start of the lock call
	From     int64 // return of the lock call
	Until    int64 // no other client may hold the name earlier: start of the release, end of validity or of a minimum hold
	Left     int64 // return of the successful unlock call; Never if there was none
}

// Holds groups the events of each hold, in the order of acquisition.
func Holds(history []Event) ([]*Hold, error) {
	byID := make(map[string]*Hold)
	var all []*Hold
	for _, e := range history {
		if e.Op == Lock && e.OK() {
			if byID[e.Hold] != nil {
				return nil, fmt.Errorf("hold %s: two successful lock events, want one", e.Hold)
			}
			h := &Hold{Name: e.Name, ID: e.Hold, Token: e.Token, Call: e.Call, From: e.Ret, Until: e.Until, Left: Never}
			byID[e.Hold] = h
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b *Hold) int { return cmp.Compare(a.From, b.From) })
	ended, kept := make(map[string]int64), make(map[string]int64)
	for _, e := range history {
		h := byID[e.Hold]
		switch {
		case h == nil || !e.OK():
		case e.Op == Leave:
			ended[e.Hold] = e.Call
		case e.Op == Unlock:
			h.Left = e.Ret
		case e.Op == Kept:
			kept[e.Hold] = e.Until
		default:
			h.Until = max(h.Until, e.Until)
		}
	}
	for id, at := range ended {
		byID[id].Until = min(byID[id].Until, at)
	}
	for id, until := range kept {
		byID[id].Until = max(byID[id].Until, until)
	}
	return all, nil
}

// Violations describes the holds that were valid while another hold of the same name was valid, and the holds whose
// token is not larger than all earlier tokens of the name. The holds must be in the order of acquisition. A token of 0
// means that the hold has no token.
func Violations(holds []*Hold) (overlaps, tokens []string) {
	longest, largest := make(map[string]*Hold), make(map[string]*Hold)
	for _, h := range holds {
		if b := largest[h.Name]; b == nil || h.Token > b.Token {
			largest[h.Name] = h
		} else if h.Token != 0 {
			tokens = append(tokens, fmt.Sprintf("%s: token %d of %s is not larger than the earlier token %d of %s",
				h.Name, h.Token, h.ID, b.Token, b.ID))
		}
		b := longest[h.Name]
		if b != nil && h.From < b.Until {
			overlaps = append(overlaps, fmt.Sprintf("%s: %s acquired the lock %v before the hold of %s ended", h.Name,
				h.ID, time.Duration(b.Until-h.From), b.ID))
		}
		if b == nil || h.Until > b.Until {
			longest[h.Name] = h
		}
	}
	return overlaps, tokens
}

// uses describes the re-entries, extensions and inner unlocks that succeeded after the end of their hold (its release,
// or the acquisition of the name by another client), with another token, or without a re-entry. The holds must be in
// the order of acquisition.
func uses(events []Event, holds []*Hold) (list []string) {
	of, next := make(map[string][]Event), make(map[string]int64) // by hold; by name: the start of the next hold
	for _, e := range events {
		if e.OK() && (e.Op == Reenter || e.Op == Extend || e.Op == Inner) {
			of[e.Hold] = append(of[e.Hold], e)
		}
	}
	for _, h := range slices.Backward(holds) {
		end := max(h.Left, h.Until)
		if from, ok := next[h.Name]; ok {
			end = min(end, from)
		}
		next[h.Name] = h.From
		for _, e := range of[h.ID] {
			entered := 0
			for _, o := range of[h.ID] {
				switch {
				case o.Op == Reenter && o.Call < e.Ret:
					entered++
				case o.Op == Inner && o.Ret <= e.Ret:
					entered--
				}
			}
			wrong := e.Token != h.Token && (e.Op == Reenter || e.Token != 0) // an extension may be recorded without a token
			if e.Call > end || e.Op == Inner && entered < 0 || e.Op != Inner && wrong {
				list = append(list, fmt.Sprintf("%s: %s of %s with token %d, in re-entry %d, began %v before the end of the hold",
					h.Name, e.Op, h.ID, e.Token, entered, time.Duration(end-e.Call)))
			}
		}
	}
	return list
}

// Check returns an error if the history shows a violation: two holds of a name were valid at the same time, a token did
// not increase, or a hold was used after its end.
func Check(events []Event) error {
	holds, err := Holds(events)
	if err != nil {
		return err
	}
	overlaps, tokens := Violations(holds)
	if list := slices.Concat(overlaps, tokens, uses(events, holds)); len(list) > 0 {
		return fmt.Errorf("%d violations: %s", len(list), strings.Join(list[:min(len(list), 10)], "; "))
	}
	return nil
}

// Gaps returns for each name the longest time between two consecutive holds; 0 if there was no gap.
func Gaps(holds []*Hold) map[string]time.Duration {
	gaps, ends := make(map[string]time.Duration), make(map[string]int64)
	for _, h := range holds {
		if end, ok := ends[h.Name]; ok {
			gaps[h.Name] = max(gaps[h.Name], time.Duration(h.From-end))
		}
		ends[h.Name] = max(ends[h.Name], h.Until)
	}
	return gaps
}
