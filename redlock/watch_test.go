package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Watch reports each change once, also a change of the value, and inspects once a second.
func TestWatchReportsLeader(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l, observer := w.locker(redlock.WithLabel("the first")), w.locker()
		reports := make(chan redlockinfo.Inspection, 9)
		failed := make(chan error, 9)
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for h, err := range observer.Watch(ctx, "boss") {
				if err != nil {
					failed <- err
				} else {
					reports <- h
				}
			}
		}()
		if h := <-reports; h.ID != "" {
			w.Errorf("the first report is %+v, want no holder", h)
		}
		k := must(l.Lock(w.Context(), "boss"))(w)
		if h := <-reports; h.Label != "the first" || h.Token != k.Token() {
			w.Errorf("reported %+v for a leader with token %d", h, k.Token())
		}
		w.must(k.SetValue(w.Context(), "v1"))
		if h := <-reports; h.Token != k.Token() || h.Value != "v1" {
			w.Errorf("reported %+v for a new value", h)
		}
		before := w.count("inspect")
		after(10 * time.Second)
		if n := w.count("inspect") - before; len(reports) != 0 || n > 11*3 {
			w.Errorf("in ten seconds without changes: %d inspections, %d reports", n, len(reports))
		}
		w.noError(k.Unlock(w.Context()))
		if h := <-reports; h.ID != "" {
			w.Errorf("reported %+v after the end of the lock", h)
		}
		w.stop(0, 1)
		after(20 * time.Second)
		if len(failed) != 1 {
			w.Errorf("without a majority %d errors were reported, want 1", len(failed))
		}
		cancel()
		<-done
		for _, err := range observer.Watch(w.Context(), "boss") {
			w.isError(err, redlock.ErrNoQuorum)
			break
		}
	})
}
