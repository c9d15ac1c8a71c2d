package redlockotel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
	"github.com/redlock-go/redlock/redlockotel"
)

// A program needs one Watcher for its Locker. By default, the Watcher uses the global providers of package otel.
func ExampleWatcher() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter()
	watch, err := redlockotel.New(
		redlockotel.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	locker, done := inMemory(redlock.WithTrace(watch.Trace()))
	stop, err := watch.Watch(locker) // from now on the states of the masters are reported, too
	if err != nil {
		fmt.Println(err)
		return
	}

	err = locker.Do(ctx, "orders:42", func(context.Context, *redlock.Lock) error { return nil })
	err = errors.Join(err, stop())
	done() // Close delivers the events that are still queued
	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name)
	}
	fmt.Println(err)
	// Output:
	// redlock lock
	// redlock unlock
	// redlock do
	// <nil>
}

func ExampleOption() {
	watch, err := redlockotel.New(
		redlockotel.WithTracerProvider(sdktrace.NewTracerProvider()),
		redlockotel.WithMeterProvider(sdkmetric.NewMeterProvider()),
		redlockotel.WithNames(func(name string) string { // metrics distinguish only kinds of names
			kind, _, _ := strings.Cut(name, ":")
			return kind
		}),
	)
	fmt.Println(watch != nil, err)
	// Output:
	// true <nil>
}

// inMemory returns a Locker over masters in memory. done closes the Locker and the masters.
func inMemory(opts ...redlock.Option) (locker *redlock.Locker, done func()) {
	masters := redlocktest.New(3)
	p, err := masters.Pool()
	if err != nil {
		panic(err)
	}
	locker, err = redlock.New(p, append(opts, redlock.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		panic(err)
	}
	return locker, func() {
		_ = locker.Close()
		_ = p.Close()
		masters.Close()
	}
}
