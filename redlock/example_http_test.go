package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// A middleware holds a lock for each request to an order. The handler behind it finds the lock in the context of the
// request, which ends when the lock is lost.
func ExampleFromContext_middleware() {
	locker, masters, done := inMemory()
	defer done()

	locked := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			began := false
			err := locker.Do(r.Context(), "orders:"+r.PathValue("order"), func(ctx context.Context, _ *redlock.Lock) error {
				began = true
				next(w, r.WithContext(ctx))
				return nil
			}, redlock.WithWaitLimit(100*time.Millisecond))
			switch {
			case began: // next has answered; a lost lock is for the log
			case errors.Is(err, redlock.ErrHeld):
				http.Error(w, "another request has this order", http.StatusConflict)
			default:
				http.Error(w, "try again", http.StatusServiceUnavailable)
			}
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{order}", locked(func(w http.ResponseWriter, r *http.Request) {
		lock, _ := redlock.FromContext(r.Context()) // save(r.Context(), order, lock.Token())
		fmt.Fprint(w, "saved under the lock ", lock.Name())
	}))

	masters.Take("orders:43", time.Minute) // another server
	for _, order := range []string{"42", "43"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/"+order, nil))
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 200 saved under the lock orders:42
	// 409 another request has this order
}
