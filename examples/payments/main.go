// Command payments serves orders over HTTP. Any number of servers may run, but only one of them at a time pays an
// order.
//
//	go run ./examples/payments -listen 127.0.0.1:8080 redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
//	curl -X POST http://127.0.0.1:8080/orders/42
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

func main() {
	log.SetFlags(0)
	address := flag.String("listen", "127.0.0.1:8080", "address of the server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, flag.Args(), listener); err != nil {
		log.Fatal(err)
	}
}

// run serves orders until ctx ends, and closes l. It shuts down in this order: first the server, which waits for
// payments that have begun and still need their locks, then the Locker, which releases the remaining locks.
func run(ctx context.Context, urls []string, l net.Listener) error {
	defer l.Close()
	locker, err := redlock.Open(urls)
	if err != nil {
		return err
	}
	defer locker.Close()
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{order}", &Handler{Locker: locker, Pay: pay})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, r *http.Request) { // for a load balancer
		if err := locker.Healthy(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	over, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = server.Shutdown(over) // waits for payments that have begun
	if serving := <-served; !errors.Is(serving, http.ErrServerClosed) {
		err = errors.Join(err, serving)
	}
	return err
}

// pay only prints a line, each time that it is called: the lock lets one call at a time pay an order, not only one.
// Replace it with your payment, which does nothing if the order is already paid; see Handler.Pay.
func pay(ctx context.Context, order string, token int64) error {
	fmt.Printf("order %s is paid, token %d\n", order, token)
	return ctx.Err()
}
