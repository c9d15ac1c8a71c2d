package integration

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// never is the return time of an operation that is not known to have ended.
const never = math.MaxInt64

// A hold is one acquisition as seen by its holder.
type hold struct {
	name, id string
	token    int64
	call     int64 // start of the lock call
	from     int64 // when the call returned
	until    int64 // no other client may hold the lock before: the release, the last reported validity, or a minimum hold
	left     int64 // when the release was confirmed; never if it was not
	seq      int64 // numbers the holds, for the model
}

// holdsOf groups the events of each hold, in the order of acquisition.
func holdsOf(history []event) ([]*hold, error) {
	byID := make(map[string]*hold)
	var all []*hold
	for _, e := range history {
		if e.Op == opLock && e.ok() {
			if byID[e.Hold] != nil {
				return nil, fmt.Errorf("the hold %s begins twice", e.Hold)
			}
			h := &hold{name: e.Name, id: e.Hold, token: e.Token, call: e.Call, from: e.Ret, until: e.Until, left: never}
			byID[e.Hold] = h
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b *hold) int { return cmp.Compare(a.from, b.from) })
	for i, h := range all {
		h.seq = int64(i + 1)
	}
	ended, kept := make(map[string]int64), make(map[string]int64)
	for _, e := range history {
		h := byID[e.Hold]
		switch {
		case h == nil || !e.ok():
		case e.Op == opLeave:
			ended[e.Hold] = e.Call
		case e.Op == opUnlock:
			h.left = e.Ret
		case e.Op == opKept:
			kept[e.Hold] = e.Until
		default:
			h.until = max(h.until, e.Until)
		}
	}
	for id, at := range ended {
		byID[id].until = min(byID[id].until, at)
	}
	for id, until := range kept {
		byID[id].until = max(byID[id].until, until)
	}
	return all, nil
}

// checkIntervals returns an error if two holds of a name were valid at the same time, or a token did not increase.
func checkIntervals(holds []*hold) error {
	longest, largest := make(map[string]*hold), make(map[string]*hold)
	for _, h := range holds {
		if b := largest[h.name]; b != nil && h.token <= b.token {
			return fmt.Errorf("%s: %s has token %d, after %s had %d", h.name, h.id, h.token, b.id, b.token)
		}
		largest[h.name] = h
		b := longest[h.name]
		if b != nil && h.from < b.until {
			return fmt.Errorf("%s: %s believed to have the lock %v before %s had to give it up",
				h.name, h.id, time.Duration(b.until-h.from), b.id)
		}
		if b == nil || h.until > b.until {
			longest[h.name] = h
		}
	}
	return nil
}

// input and output describe an operation of the model.
type (
	input struct {
		op, name string
		hold     int64
	}
	output struct{ token int64 }
)

// state is the state of one name in the model: the holder, 0 for none; its depth; the largest token so far.
type state struct{ holder, depth, token int64 }

// lockModel is a lock with tokens. One hold has it at a time, each with a larger token than the one before. Only the
// holder re-enters, extends and releases it.
var lockModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byName := make(map[string][]porcupine.Operation)
		for _, o := range history {
			name := o.Input.(input).name
			byName[name] = append(byName[name], o)
		}
		parts := make([][]porcupine.Operation, 0, len(byName))
		for _, part := range byName {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return state{} },
	Step: func(was, in, out any) (bool, any) {
		s, i, o := was.(state), in.(input), out.(output)
		if i.op == opLock {
			return s.holder == 0 && o.token > s.token, state{holder: i.hold, depth: 1, token: o.token}
		}
		if s.holder != i.hold {
			return false, s
		}
		switch i.op {
		case opReenter:
			s.depth++
			return o.token == s.token, s
		case opInner:
			s.depth--
			return s.depth > 0, s
		case opUnlock:
			return true, state{token: s.token}
		default: // extend
			return true, s
		}
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprint(in, out) },
	DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
}

// operations converts the history for the model. The end of a hold is an operation that begins when the hold was no
// longer valid for its holder, and that may take effect at any later time, unless its release was confirmed.
func operations(history []event, holds []*hold) []porcupine.Operation {
	var ops []porcupine.Operation
	byID := make(map[string]*hold, len(holds))
	for _, h := range holds {
		byID[h.id] = h
		ops = append(ops,
			porcupine.Operation{Input: input{opLock, h.name, h.seq}, Output: output{h.token}, Call: h.call, Return: h.from},
			porcupine.Operation{Input: input{opUnlock, h.name, h.seq}, Output: output{}, Call: h.until,
				Return: max(h.left, h.until)})
	}
	for _, e := range history {
		h := byID[e.Hold]
		if h != nil && e.ok() && (e.Op == opReenter || e.Op == opExtend || e.Op == opInner) {
			ops = append(ops, porcupine.Operation{
				Input: input{e.Op, e.Name, h.seq}, Output: output{e.Token}, Call: e.Call, Return: e.Ret,
			})
		}
	}
	return ops
}

// checkHistory returns the violation in a history, found by the intervals or by the model.
func checkHistory(history []event, bound time.Duration) error {
	holds, err := holdsOf(history)
	if err != nil {
		return err
	}
	return errors.Join(checkIntervals(holds), checkModel(history, holds, bound))
}

func checkModel(history []event, holds []*hold, bound time.Duration) error {
	switch result := porcupine.CheckOperationsTimeout(lockModel, operations(history, holds), bound); result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("the model has come to no decision about %d holds in %v", len(holds), bound)
	default:
		return fmt.Errorf("no order of the %d holds explains what the callers saw", len(holds))
	}
}
