package integration

import (
	"errors"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/redlock-go/redlock/internal/history"
)

// input and output are the input and output of an operation of the model.
type (
	input struct {
		op, name string
		hold     int64
	}
	output struct{ token int64 }
)

// state is the state of one name in the model: the holder (0 for none), its depth, and the largest token so far.
type state struct{ holder, depth, token int64 }

// lockModel is a lock with tokens. Only one hold has the lock at a time, and its token is larger than that of the
// previous hold. Only the holder re-enters, extends and releases the lock.
var lockModel = porcupine.Model{
	Partition: func(events []porcupine.Operation) [][]porcupine.Operation {
		byName := make(map[string][]porcupine.Operation)
		for _, o := range events {
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
		if i.op == history.Lock {
			return s.holder == 0 && o.token > s.token, state{holder: i.hold, depth: 1, token: o.token}
		}
		if s.holder != i.hold {
			return false, s
		}
		switch i.op {
		case history.Reenter:
			s.depth++
			return o.token == s.token, s
		case history.Inner:
			s.depth--
			return s.depth > 0, s
		case history.Unlock:
			return true, state{token: s.token}
		default: // extend
			return true, s
		}
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprint(in, out) },
	DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
}

// operations converts the history for the model. The end of a hold is an operation that begins when the hold is no
// longer valid for its holder. It takes effect before its release is confirmed, or at any later time if the release is
// not confirmed.
func operations(events []history.Event, holds []*history.Hold) []porcupine.Operation {
	var ops []porcupine.Operation
	byID := make(map[string]*history.Hold, len(holds))
	for _, h := range holds {
		byID[h.ID] = h
		ops = append(ops,
			porcupine.Operation{Input: input{history.Lock, h.Name, h.Seq}, Output: output{h.Token}, Call: h.Call,
				Return: h.From},
			porcupine.Operation{Input: input{history.Unlock, h.Name, h.Seq}, Output: output{}, Call: h.Until,
				Return: max(h.Left, h.Until)})
	}
	for _, e := range events {
		h := byID[e.Hold]
		if h != nil && e.OK() && (e.Op == history.Reenter || e.Op == history.Extend || e.Op == history.Inner) {
			ops = append(ops, porcupine.Operation{
				Input: input{e.Op, e.Name, h.Seq}, Output: output{e.Token}, Call: e.Call, Return: e.Ret,
			})
		}
	}
	return ops
}

// checkHistory returns an error if the intervals or the model show a violation in the history.
func checkHistory(events []history.Event, bound time.Duration) error {
	holds, err := history.Holds(events)
	if err != nil {
		return err
	}
	return errors.Join(history.Check(holds), checkModel(events, holds, bound))
}

func checkModel(events []history.Event, holds []*history.Hold, bound time.Duration) error {
	switch result := porcupine.CheckOperationsTimeout(lockModel, operations(events, holds), bound); result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("the model check of %d holds has not ended within %v", len(holds), bound)
	default:
		return fmt.Errorf("no order of the %d holds explains what the callers saw", len(holds))
	}
}
