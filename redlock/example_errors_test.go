package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// The error of a call, with the parts that errors.Is and errors.As find: the outcome, the error of the context, and why
// masters failed.
func ExampleLockError() {
	locker, masters, done := inMemory()
	defer done()
	masters.Take("orders:42", time.Minute)
	masters.Master(2).Stop()

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := locker.Lock(ctx, "orders:42")
	err = fmt.Errorf("booking: %w", err)
	fmt.Println("held by another:", errors.Is(err, redlock.ErrHeld))
	fmt.Println("no quorum:", errors.Is(err, redlock.ErrNoQuorum))
	fmt.Println("out of time:", errors.Is(err, context.DeadlineExceeded))
	var failed *redlock.LockError
	if errors.As(err, &failed) {
		fmt.Println("the call:", failed.Op, failed.Name, "expires in about a minute:", failed.Left > 50*time.Second)
	}
	fmt.Println("a master is down:", errors.Is(err, pool.ErrDown))
	fmt.Println("a maximum hold is a loss:", errors.Is(redlock.ErrMaxHold, redlock.ErrLost))
	// Output:
	// held by another: true
	// no quorum: false
	// out of time: true
	// the call: lock orders:42 expires in about a minute: true
	// a master is down: true
	// a maximum hold is a loss: true
}

// serve answers a request with the result of f, which runs under the lock of name.
func serve(w http.ResponseWriter, r *http.Request, locker *redlock.Locker, name string, f func(context.Context) error) {
	err := locker.TryDo(r.Context(), name, func(ctx context.Context, _ *redlock.Lock) error { return f(ctx) })
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if after, known := redlock.RetryAfter(err); known && redlock.NotRun(err) {
		w.Header().Set("Retry-After", fmt.Sprint(math.Ceil(after.Seconds())))
	}
	status, level := answerTo(err)
	slog.Log(r.Context(), level, "order failed", "error", err)
	http.Error(w, http.StatusText(status), status)
}

// answerTo returns the HTTP status and the log level for the error of a Do or TryDo.
func answerTo(err error) (status int, level slog.Level) {
	switch notRun := redlock.NotRun(err); {
	case notRun && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)):
		return http.StatusGatewayTimeout, slog.LevelInfo
	case notRun && errors.Is(err, redlock.ErrHeld), errors.Is(err, redlock.ErrClosed):
		return http.StatusServiceUnavailable, slog.LevelInfo
	case notRun && errors.Is(err, redlock.ErrOverloaded):
		return http.StatusServiceUnavailable, slog.LevelWarn
	case errors.Is(err, redlock.ErrTTLTooLong), errors.Is(err, redlock.ErrTokensExhausted):
		return http.StatusInternalServerError, slog.LevelError
	case notRun && errors.Is(err, redlock.ErrNoQuorum): // also ErrMasterList
		return http.StatusServiceUnavailable, slog.LevelError
	case !notRun && errors.Is(err, redlock.ErrLost):
		return http.StatusInternalServerError, slog.LevelWarn
	}
	return http.StatusInternalServerError, slog.LevelError // f has failed, or the call is wrong
}

func ExampleRetryAfter_server() {
	locker, masters, done := inMemory()
	defer done()
	masters.Take("orders:42", time.Minute)

	answer := httptest.NewRecorder()
	work := func(context.Context) error { return nil }
	serve(answer, httptest.NewRequest(http.MethodPost, "/", nil), locker, "orders:42", work)
	fmt.Println(answer.Code, "retry after a minute:", answer.Header().Get("Retry-After") >= "59")
	// Output: 503 retry after a minute: true
}

func ExampleNotRun() {
	ctx := context.Background()
	locker, masters, done := inMemory()
	defer done()
	masters.Take("inner", time.Minute)

	err := locker.Do(ctx, "outer", func(ctx context.Context, _ *redlock.Lock) error {
		fmt.Println("a part of the work")
		return locker.TryDo(ctx, "inner", func(context.Context, *redlock.Lock) error { return nil })
	})
	fmt.Println(errors.Is(err, redlock.ErrHeld), redlock.NotRun(err))
	err = locker.TryDo(ctx, "inner", func(context.Context, *redlock.Lock) error { return nil })
	fmt.Println(errors.Is(err, redlock.ErrHeld), redlock.NotRun(err))
	// Output:
	// a part of the work
	// true false
	// true true
}
