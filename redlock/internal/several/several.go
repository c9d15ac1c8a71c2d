package several

import "sync"

// A Source is where the things come from. They are numbered in the order that all go by.
type Source[T any] struct {
	Try  func(i int) (T, error) // takes a thing if it is free; called for several at once
	Wait func(i int) (T, error) // waits for it
	Good func(T) bool           // reports whether it is still held
	Drop func([]T)              // gives things back
}

// Take takes the things 0 to n-1, or none. All are tried at once; of those, the ones before the first that was refused
// are kept, the others given back, and that one is waited for; then the rest is tried again. Things that are lost
// during the wait are taken again, with all that come after them. Without wait the first refusal is the end. Where Wait
// panics, what is held is given back.
func Take[T any](n int, wait bool, from *Source[T]) (all []T, err error) {
	var held []T
	defer func() {
		if len(all) < n {
			from.Drop(held)
		}
	}()
	for {
		for i, t := range held {
			if !from.Good(t) {
				from.Drop(held[i:])
				held = held[:i]
				break
			}
		}
		if len(held) == n {
			return held, nil
		}
		if held, err = tryRest(held, n, from); err != nil && wait {
			var t T
			if t, err = from.Wait(len(held)); err == nil {
				held = append(held, t)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// tryRest tries all that is not held yet, and returns what is held then. The error is that of the first refusal.
func tryRest[T any](held []T, n int, from *Source[T]) ([]T, error) {
	got, errs := make([]T, n), make([]error, n)
	var wg sync.WaitGroup
	for i := len(held); i < n; i++ {
		wg.Go(func() { got[i], errs[i] = from.Try(i) })
	}
	wg.Wait()
	var refusal error
	var behind []T
	for i := len(held); i < n; i++ {
		switch {
		case errs[i] != nil && refusal == nil:
			refusal = errs[i]
		case errs[i] == nil && refusal == nil:
			held = append(held, got[i])
		case errs[i] == nil:
			behind = append(behind, got[i])
		}
	}
	from.Drop(behind)
	return held, refusal
}
