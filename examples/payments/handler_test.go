package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// inMemory runs a test over five masters in memory, in a bubble where seconds pass at once.
func inMemory(t *testing.T, test func(t *testing.T, masters *redlocktest.Masters, locker *redlock.Locker)) {
	synctest.Test(t, func(t *testing.T) {
		locker, masters := redlocktest.NewLocker(t, 5, redlock.WithLogger(slog.New(slog.DiscardHandler)))
		test(t, masters, locker)
	})
}

func TestEachOrderIsPaidByOne(t *testing.T) {
	inMemory(t, func(t *testing.T, masters *redlocktest.Masters, locker *redlock.Locker) {
		var tokens []int64
		h := &Handler{Locker: locker, Pay: func(_ context.Context, _ string, token int64) error {
			tokens = append(tokens, token)
			return nil
		}}
		if status := ask(h); status != http.StatusOK {
			t.Error(status)
		}
		masters.Take("orders:42", time.Minute) // another server pays it
		if status := ask(h); status != http.StatusConflict {
			t.Error(status)
		}
		masters.Free("orders:42")
		if status := ask(h); status != http.StatusOK {
			t.Error(status)
		}
		masters.Master(0).Stop()
		masters.Master(1).Hang() // two of five fail, so a majority remains
		if status := ask(h); status != http.StatusOK {
			t.Error(status)
		}
		masters.Master(2).Hang()
		if status := ask(h); status != http.StatusServiceUnavailable {
			t.Error(status)
		}
		if len(tokens) != 3 || tokens[0] >= tokens[1] || tokens[1] >= tokens[2] {
			t.Errorf("tokens %d, want three that grow", tokens)
		}
	})
}

// A server that is shutting down does not pay, and its response says that the client may retry on another server.
func TestClosingServerRefusesPayments(t *testing.T) {
	inMemory(t, func(t *testing.T, _ *redlocktest.Masters, locker *redlock.Locker) {
		if err := locker.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if status := ask(&Handler{Locker: locker}); status != http.StatusServiceUnavailable {
			t.Error(status)
		}
	})
}

func TestPayingStopsWhenTheLockIsLost(t *testing.T) {
	inMemory(t, func(t *testing.T, masters *redlocktest.Masters, locker *redlock.Locker) {
		h := &Handler{Locker: locker, Pay: func(ctx context.Context, order string, _ int64) error {
			masters.Lose("orders:" + order)
			<-ctx.Done()
			return ctx.Err()
		}}
		if status := ask(h); status != http.StatusInternalServerError {
			t.Error(status)
		}
	})
}

// A master that restarts empty takes no lock away, and votes again after its quarantine.
func TestPayingContinuesDuringRestart(t *testing.T) {
	inMemory(t, func(t *testing.T, masters *redlocktest.Masters, locker *redlock.Locker) {
		h := &Handler{Locker: locker, Pay: func(ctx context.Context, _ string, _ int64) error {
			masters.Master(0).Restart(false)
			time.Sleep(time.Minute)
			return ctx.Err()
		}}
		if status := ask(h); status != http.StatusOK {
			t.Error(status)
		}
		if m := locker.Admin().Masters()[0]; m.State != "voting" {
			t.Errorf("a minute after its restart the master is %s: %v", m.State, m.Err)
		}
	})
}

// ask makes the handler pay order 42, and returns the status.
func ask(h http.Handler) int {
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{order}", h)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
	return w.Code
}
