package multilock

import "sync"

// A Source acquires and releases the things. They are numbered in the order that all clients use.
type Source[T any] struct {
	Try     func(i int) (T, error) // acquires a thing if it is free; called for several concurrently
	Wait    func(i int) (T, error) // waits for a thing and acquires it
	Held    func(T) bool           // reports whether a thing is still held
	Release func([]T)              // releases things
}

// Acquire acquires the things 0 to n-1, or none. It tries all things concurrently. If one is refused, Acquire keeps
// the things before the first refused one, releases the others, waits for the refused one, and then tries the rest
// again. If a thing is lost during the wait, Acquire acquires it again, together with all things after it. If wait is
// false, Acquire fails at the first refusal. If Wait panics, everything held is released.
func Acquire[T any](n int, wait bool, from *Source[T]) (all []T, err error) {
	var held []T
	defer func() {
		if len(all) < n {
			from.Release(held)
		}
	}()
	for {
		for i, t := range held {
			if !from.Held(t) {
				from.Release(held[i:])
				held = held[:i]
				break
			}
		}
		if len(held) == n {
			return held, nil
		}
		if held, err = tryMissing(held, n, from); err != nil && wait {
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

// tryMissing tries each thing that is not held yet, and returns the things that are held afterwards. The error is that
// of the first refusal.
func tryMissing[T any](held []T, n int, from *Source[T]) ([]T, error) {
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
	from.Release(behind)
	return held, refusal
}
