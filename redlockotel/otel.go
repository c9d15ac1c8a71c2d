package redlockotel

import (
	"context"
	"errors"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/dbconv"
	"go.opentelemetry.io/otel/trace"

	"github.com/redlock-go/redlock/internal/diagnose"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

const scope = "github.com/redlock-go/redlock/redlockotel"

// version returns the version of this module that the Go command has recorded in the program, or "".
var version = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == scope {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return ""
})

// A Watcher records the spans and the metrics of one Locker. It is safe for concurrent use.
type Watcher struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
	names   func(name string) string // nil: metrics do not contain names
	known   sync.Map                 // values of redlock.name of locks that were held; their series continue with 0

	tracer trace.Tracer
	meter  metric.Meter

	waits, holds, latency           metric.Float64Histogram
	lost, attempts, extended, votes metric.Int64Counter
	values                          metric.Int64Counter
}

// An Option configures a [Watcher].
type Option func(*Watcher)

// WithTracerProvider sets the provider of the tracer. The default is the global provider of package otel.
func WithTracerProvider(p trace.TracerProvider) Option { return func(w *Watcher) { w.tracers = p } }

// WithMeterProvider sets the provider of the meter. The default is the global provider of package otel.
func WithMeterProvider(p metric.MeterProvider) Option { return func(w *Watcher) { w.meters = p } }

// WithNames adds the attribute redlock.name to the metrics of waits, holds, losses, attempts, extensions, value changes
// and held locks. The value of the attribute is the result of f for the name of the lock. f must have few distinct
// results. f is called concurrently, and also with invalid names.
func WithNames(f func(name string) string) Option { return func(w *Watcher) { w.names = f } }

// New returns a Watcher, or an error if an instrument cannot be created.
func New(opts ...Option) (*Watcher, error) {
	w := &Watcher{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider()}
	for _, o := range opts {
		o(w)
	}
	v := version()
	w.tracer = w.tracers.Tracer(scope, trace.WithInstrumentationVersion(v), trace.WithSchemaURL(semconv.SchemaURL))
	w.meter = w.meters.Meter(scope, metric.WithInstrumentationVersion(v), metric.WithSchemaURL(semconv.SchemaURL))
	var errs []error
	histogram := func(name, help string, bounds ...float64) metric.Float64Histogram {
		h, err := w.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(help),
			metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, unit, help string) metric.Int64Counter {
		c, err := w.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return c
	}
	w.waits = histogram("redlock.wait.duration", "Duration of calls that acquire a lock.",
		.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)
	w.holds = histogram("redlock.hold.duration", "Time for which locks were held.",
		.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600)
	d := dbconv.ClientOperationDuration{}
	w.latency = histogram(d.Name(), d.Description(), .001, .005, .01, .05, .1, .5, 1, 5, 10)
	w.lost = counter("redlock.lost", "{lock}", "Locks that ended before their release.")
	w.attempts = counter("redlock.attempts", "{attempt}", "Rounds that tried to acquire a lock.")
	w.extended = counter("redlock.extensions", "{extension}", "Rounds that tried to extend a held lock.")
	w.votes = counter("redlock.votes", "{vote}", "Votes of the master, including refusals and failures.")
	w.values = counter("redlock.value.changes", "{call}", "Calls that set the value of a lock.")
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return w, nil
}

// Trace returns the callbacks for [redlock.WithTrace] of one Locker.
func (w *Watcher) Trace() *redlockinfo.Trace {
	background := context.Background()
	return &redlockinfo.Trace{Do: w.do, Event: func(e redlockinfo.Event) {
		switch e.Kind {
		case redlockinfo.KindCall:
			w.call(e)
		case redlockinfo.KindVote:
			w.vote(e)
		case redlockinfo.KindAttempt:
			w.attempts.Add(background, 1, w.attributes(e.Name, e.Err))
		case redlockinfo.KindExtended:
			w.extended.Add(background, 1, w.attributes(e.Name, e.Err))
		case redlockinfo.KindReleased:
			w.over(e)
		case redlockinfo.KindLost:
			w.over(e)
			w.lost.Add(background, 1, w.attributes(e.Name, e.Err))
		}
	}}
}

// do implements redlockinfo.Trace.Do. It starts the span of a Do, because the context of the function must contain
// the span.
func (w *Watcher) do(ctx context.Context, name string) context.Context {
	ctx, span := w.tracer.Start(ctx, "redlock do", trace.WithAttributes(text("redlock.name", name)))
	return context.WithValue(ctx, w, span)
}

// call ends the span of a Do, and records the span of any other call. The event of a call arrives late, so the span
// gets the times in the event.
func (w *Watcher) call(i redlockinfo.Event) {
	ctx := i.Context
	span, _ := ctx.Value(w).(trace.Span)
	if i.Op != "do" || span == nil {
		ctx, span = w.tracer.Start(ctx, "redlock "+string(i.Op), trace.WithTimestamp(i.Time),
			trace.WithAttributes(text("redlock.name", i.Name)))
	}
	switch i.Op {
	case redlockinfo.OpLock, redlockinfo.OpTryLock, redlockinfo.OpRLock, redlockinfo.OpTryRLock,
		redlockinfo.OpAcquire, redlockinfo.OpTryAcquire, redlockinfo.OpImport, redlockinfo.OpDowngrade:
		w.waits.Record(ctx, i.Elapsed.Seconds(), w.attributes(i.Name, i.Err, text("redlock.operation", string(i.Op))))
	case redlockinfo.OpSetValue:
		w.values.Add(ctx, 1, w.attributes(i.Name, i.Err))
	}
	end(span, &i)
}

// end records the outcome of a call in the span of the call, and ends the span.
func end(span trace.Span, i *redlockinfo.Event) {
	defer span.End(trace.WithTimestamp(i.Time.Add(i.Elapsed)))
	if !span.IsRecording() {
		return
	}
	count := func(key string, n int64) {
		if n > 0 {
			span.SetAttributes(attribute.Int64(key, n))
		}
	}
	count("redlock.token", i.Token)
	count("redlock.attempts", int64(i.Attempts))
	count("redlock.place", int64(i.Place))
	count("redlock.votes.granted", int64(i.Votes.Granted))
	count("redlock.masters", int64(i.Votes.N))
	if i.Held > 0 {
		span.SetAttributes(attribute.Float64("redlock.held", i.Held.Seconds()))
	}
	if i.Err == nil {
		return
	}
	span.SetAttributes(semconv.ErrorTypeKey.String(redlock.Outcome(i.Err)))
	if !isRefusal(i) {
		span.SetStatus(codes.Error, strings.ToValidUTF8(i.Err.Error(), "\ufffd"))
	}
}

// isRefusal reports whether a call that does not wait, such as TryLock or TryDo, failed because the name is held.
func isRefusal(i *redlockinfo.Event) bool {
	op := i.Op
	if failed := (*redlock.LockError)(nil); op == redlockinfo.OpDo && redlock.NotRun(i.Err) && errors.As(i.Err, &failed) {
		op = failed.Op
	}
	return strings.HasPrefix(string(op), "try ") && errors.Is(i.Err, redlock.ErrHeld)
}

func (w *Watcher) over(i redlockinfo.Event) {
	w.holds.Record(context.Background(), i.Held.Seconds(), w.attributes(i.Name, nil))
	if w.names != nil {
		w.known.LoadOrStore(w.names(i.Name), i.Name)
	}
}

func (w *Watcher) vote(v redlockinfo.Event) {
	ctx, at := context.Background(), address(v.Master)
	w.votes.Add(ctx, 1, metric.WithAttributes(append(at, text("redlock.vote", string(v.Vote)))...))
	if v.Err != nil && (v.Vote == redlockinfo.VoteNotVoting || v.Vote == redlockinfo.VoteRefused) {
		return // nothing was sent to the master, because it has no vote
	}
	at = append(at, semconv.DBSystemNameRedis, semconv.DBOperationName("EVALSHA"))
	w.latency.Record(ctx, v.Elapsed.Seconds(), metric.WithAttributes(append(at, failure(v.Err)...)...))
}

// failure returns the attributes of an operation that failed with err: the code if err is an error reply, as the
// semantic conventions for Redis require, and otherwise a word. If err is nil, failure returns no attributes.
func failure(err error) []attribute.KeyValue {
	var reply redis.Error
	word := string(dbconv.ErrorTypeOther)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &reply) && !errors.Is(err, pool.ErrDown):
		code, _, _ := strings.Cut(string(reply), " ")
		code = strings.ToValidUTF8(code, "\ufffd")
		return []attribute.KeyValue{semconv.ErrorTypeKey.String(code), semconv.DBResponseStatusCode(code)}
	case errors.Is(err, pool.ErrTimeout):
		word = "timeout"
	case errors.Is(err, pool.ErrRefused):
		word = "refused"
	case errors.Is(err, pool.ErrClosed):
		word = "closed"
	case errors.Is(err, pool.ErrDown):
		word = "down"
	}
	return []attribute.KeyValue{semconv.ErrorTypeKey.String(word)}
}

// attributes returns attrs, the name of the lock if metrics contain names, and the outcome if err is not nil.
func (w *Watcher) attributes(name string, err error, attrs ...attribute.KeyValue) metric.MeasurementOption {
	if w.names != nil {
		attrs = append(attrs, text("redlock.name", w.names(name)))
	}
	if err != nil {
		attrs = append(attrs, semconv.ErrorTypeKey.String(redlock.Outcome(err)))
	}
	return metric.WithAttributes(attrs...)
}

// text returns a string attribute. It replaces invalid UTF-8 in value.
func text(key, value string) attribute.KeyValue {
	return attribute.String(key, strings.ToValidUTF8(value, "\ufffd"))
}

// address returns the attributes for the address of a master.
func address(name string) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 6)
	host, port, err := net.SplitHostPort(name)
	n, bad := strconv.Atoi(port)
	if err != nil || bad != nil {
		return append(attrs, semconv.ServerAddress(name))
	}
	return append(attrs, semconv.ServerAddress(host), semconv.ServerPort(n))
}

// states lists the states of redlockinfo.Master.
var states = []redlockinfo.State{
	redlockinfo.StateConnecting, redlockinfo.StateDown, redlockinfo.StateQuarantine, redlockinfo.StateVoting,
	redlockinfo.StateFailing, redlockinfo.StateBlocked,
}

// Watch registers the metrics that are read from l at each collection: the held locks, the counts of [redlock.Stats],
// and the state of the masters. It returns an error if an instrument cannot be created. stop unregisters these metrics.
// Call stop before you discard l.
func (w *Watcher) Watch(l *redlock.Locker) (stop func() error, err error) {
	admin.Of(l) // panics if l is nil
	var errs []error
	total := func(name, unit, help string) metric.Int64ObservableCounter {
		c, err := w.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return c
	}
	sum := func(name, unit, help string) metric.Int64ObservableUpDownCounter {
		c, err := w.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return c
	}
	gauge := func(name, unit, help string) metric.Int64ObservableGauge {
		g, err := w.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return g
	}
	held := sum("redlock.held", "{lock}", "Locks that are held now.")
	waiting := sum("redlock.waiting", "{call}", "Calls that wait for a lock now.")
	unconfirmed := total("redlock.releases.unconfirmed", "{release}", "Releases that no quorum confirmed in time.")
	dropped := total("redlock.events.dropped", "{event}", "Log records and trace events that were dropped.")
	panics := total("redlock.callback.panics", "{panic}", "Callbacks that panicked.")
	voting := sum("redlock.master.voting", "{master}", "1 if the master votes and is not failing, else 0.")
	state := sum("redlock.master.state", "{master}", "1 for the current state of the master, 0 for other states.")
	epoch := gauge("redlock.master.epoch", "1", "The epoch of the admission record of the master.")
	pending := sum("redlock.master.pending_releases", "{release}", "Releases that the master has not received yet.")
	left, err := w.meter.Float64ObservableGauge("redlock.master.quarantine.left", metric.WithUnit("s"),
		metric.WithDescription("Remaining quarantine of the master."))
	errs = append(errs, err)
	quorum := gauge("redlock.quorum", "1", "1 if a quorum of masters can grant a lock, else 0.")
	spare := gauge("redlock.masters.spare", "{master}",
		"Masters that may still fail before no lock can be acquired; -1 if none can be now.")
	unusable := gauge("redlock.file.unusable", "1", "1 if the client cannot use the masters in its file, else 0.")
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	over := ended()
	look := func(_ context.Context, o metric.Observer) error {
		stats := l.Stats()
		for name, n := range w.count(stats.Held) {
			o.ObserveInt64(held, n, w.attributes(name, nil))
		}
		for reason, n := range stats.Waiting {
			o.ObserveInt64(waiting, int64(n), metric.WithAttributes(text("redlock.reason", reason)))
		}
		o.ObserveInt64(unconfirmed, int64(stats.Unconfirmed))
		o.ObserveInt64(dropped, int64(stats.Dropped))
		o.ObserveInt64(panics, int64(stats.Panics))
		o.ObserveInt64(spare, int64(stats.Spare))
		o.ObserveInt64(unusable, one(stats.FileUnusable))
		observeMasters(o, admin.Of(l).Masters(), voting, pending, state, epoch, left)
		o.ObserveInt64(quorum, one(l.WaitReady(over) == nil))
		return nil
	}
	r, err := w.meter.RegisterCallback(look, held, waiting, unconfirmed, dropped, panics, voting, state, epoch, pending,
		left, quorum, spare, unusable)
	if err != nil {
		return nil, err
	}
	return r.Unregister, nil
}

// ended returns a context that has ended, with which WaitReady returns immediately.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// observeMasters records the state of each master.
func observeMasters(
	o metric.Observer, masters []redlockinfo.Master, voting, pending, state metric.Int64ObservableUpDownCounter,
	epoch metric.Int64ObservableGauge, left metric.Float64ObservableGauge,
) {
	for _, m := range diagnose.Records(masters) {
		o.ObserveInt64(epoch, m.Epoch, metric.WithAttributes(append(address(m.Addr), text("redlock.list", m.List))...))
	}
	for _, m := range diagnose.Servers(masters) {
		at := metric.WithAttributes(address(m.Addr)...)
		o.ObserveInt64(voting, one(m.State == redlockinfo.StateVoting), at)
		for _, s := range states {
			o.ObserveInt64(state, one(m.State == s),
				metric.WithAttributes(append(address(m.Addr), text("redlock.state", string(s)))...))
		}
		o.ObserveInt64(pending, int64(m.Pending), at)
		o.ObserveFloat64(left, m.Left.Seconds(), at)
	}
}

// count returns the number of names for each value of the attribute redlock.name. The key is one of the names with that
// value.
func (w *Watcher) count(names []string) map[string]int64 {
	if w.names == nil {
		return map[string]int64{"": int64(len(names))}
	}
	counts := map[string]int64{}
	for _, name := range names {
		first, _ := w.known.LoadOrStore(w.names(name), name)
		counts[first.(string)]++
	}
	w.known.Range(func(_, first any) bool {
		counts[first.(string)] += 0
		return true
	})
	return counts
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
