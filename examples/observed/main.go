// Command observed acquires locks until it is interrupted. It exports metrics to Prometheus, at /metrics, and writes an
// OpenTelemetry span of each call to standard output. /ready reports whether a quorum of the masters votes.
//
//	go run ./examples/observed -listen 127.0.0.1:2112 redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
//	go run ./examples/observed -config locks.json
//
// README.md lists useful queries. The alerting rules are in deploy/prometheus.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlockotel"
	"github.com/redlock-go/redlock/redlockprom"
)

func main() {
	log.SetFlags(0)
	address := flag.String("listen", "127.0.0.1:2112", "address on which /metrics is served")
	ttl := flag.Duration("ttl", 10*time.Second, "TTL of the locks")
	config := flag.String("config", "", "file with the masters, instead of URLs; its changes are applied")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, *config, flag.Args(), listener, os.Stdout, redlock.WithTTL(*ttl)); err != nil {
		log.Fatal(err)
	}
}

// run runs jobs under locks until ctx ends, and closes l.
func run(
	ctx context.Context, config string, urls []string, l net.Listener, spans io.Writer, opts ...redlock.Option,
) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	registry := prometheus.NewRegistry()
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { defer cancel(); served <- server.Serve(l) }()
	defer func() {
		_ = server.Close()
		if serving := <-served; !errors.Is(serving, http.ErrServerClosed) {
			err = errors.Join(err, serving)
		}
	}()
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(spans))
	if err != nil {
		return err
	}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	defer func() { err = errors.Join(err, tracers.Shutdown(context.WithoutCancel(ctx))) }() // exports the last spans
	collector := redlockprom.New()
	watcher, err := redlockotel.New(redlockotel.WithTracerProvider(tracers))
	if err != nil {
		return err
	}
	opts = append(opts, redlock.WithTrace(collector.Trace(), watcher.Trace()))
	locker, err := open(ctx, config, urls, opts...)
	if err != nil {
		return err
	}
	collector.Watch(locker)
	registry.MustRegister(collector)
	mux.HandleFunc("/ready", func(w http.ResponseWriter, r *http.Request) { ready(w, r, locker) })
	work(ctx, locker, tracers.Tracer("observed"))
	return locker.Close()
}

// ready replies with status 200 if a quorum of the masters votes, and otherwise with status 503 and the reason for each
// master that does not vote.
func ready(w http.ResponseWriter, r *http.Request, locker *redlock.Locker) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if err := locker.WaitReady(ctx); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "a quorum votes\n")
}
