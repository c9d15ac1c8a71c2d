package redlockprom_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
	"github.com/redlock-go/redlock/redlockprom"
)

// A program needs one Collector for its Locker, and registers the Collector with its other metrics.
func ExampleCollector() {
	metrics := redlockprom.New()
	locker, done := inMemory(redlock.WithTrace(metrics.Trace()))
	defer done()
	metrics.Watch(locker) // from now on the states of the masters are reported, too
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)

	err := locker.Do(context.Background(), "orders:42", func(context.Context, *redlock.Lock) error {
		return testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP redlock_held Locks that are held now.
# TYPE redlock_held gauge
redlock_held 1
`), "redlock_held")
	})
	descriptions, values := make(chan *prometheus.Desc, 100), make(chan prometheus.Metric, 1000)
	metrics.Describe(descriptions) // registries make these two calls
	metrics.Collect(values)
	fmt.Println(err, len(descriptions) > 0, len(values) > 0)
	// Output:
	// <nil> true true
}

// WithNames maps the names of many orders to one label, so metrics distinguish only kinds of names.
func ExampleWithNames() {
	metrics := redlockprom.New(redlockprom.WithNames(func(name string) string {
		kind, _, _ := strings.Cut(name, ":")
		return kind
	}))
	locker, done := inMemory(redlock.WithTrace(metrics.Trace()))
	defer done()
	metrics.Watch(locker)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)

	err := locker.Do(context.Background(), "orders:42", func(context.Context, *redlock.Lock) error {
		return testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP redlock_held Locks that are held now.
# TYPE redlock_held gauge
redlock_held{name="orders"} 1
`), "redlock_held")
	})
	fmt.Println(err)
	// Output:
	// <nil>
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
