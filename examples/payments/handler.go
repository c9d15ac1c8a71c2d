package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// A Handler pays the order in the request path. The tests of a Handler need no Redis server.
type Handler struct {
	Locker *redlock.Locker // one for the whole program, created at its start and closed at its end
	// Pay must write with the token, to a table that refuses a token smaller than the largest one it has seen: see
	// examples/fencing. Pay must do nothing if the order is already paid.
	Pay func(ctx context.Context, order string, token int64) error
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	order, paid := r.PathValue("order"), false
	ctx := context.WithoutCancel(r.Context()) // a payment that has begun continues if the client disconnects
	err := h.Locker.Do(ctx, "orders:"+order, func(ctx context.Context, lock *redlock.Lock) error {
		err := h.Pay(ctx, order, lock.Token()) // ctx ends when the lock is lost
		paid = err == nil
		return err
	}, redlock.WithWaitLimit(2*time.Second))
	switch {
	case paid: // err is not nil if the lock ended early
		if err != nil {
			slog.Warn("paid, but the lock ended early", "order", order, "error", err)
		}
		fmt.Fprintln(w, "paid")
	case redlock.NotRun(err) && errors.Is(err, redlock.ErrHeld):
		http.Error(w, "another client is paying this order", http.StatusConflict)
	case redlock.NotRun(err): // too few masters answered in time, or this server is closing
		slog.Warn("payment not started", "order", order, "error", err)
		http.Error(w, "payment not started; try again", http.StatusServiceUnavailable)
	default: // also ErrLost: Pay may have paid; the client retries, and Pay does nothing if the order is already paid
		slog.Error("outcome of the payment is unknown", "order", order, "error", err)
		http.Error(w, "outcome of the payment is unknown; try again", http.StatusInternalServerError)
	}
}
