package redlockotel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
	"github.com/redlock-go/redlock/redlockotel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A deployment is a Locker over three masters in memory, with the spans and metrics that the OpenTelemetry SDK
// receives from the Locker.
type deployment struct {
	*testing.T
	*redlock.Locker
	masters *redlocktest.Masters
	watch   *redlockotel.Watcher
	spans   *tracetest.InMemoryExporter
	tracer  trace.Tracer
	reader  *sdkmetric.ManualReader
	stop    func() error // of Watch
}

// observed returns a deployment. It must be called in a bubble of package synctest.
func observed(t *testing.T, opts ...redlockotel.Option) *deployment {
	t.Helper()
	f := &deployment{T: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(f.spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(f.reader))
	t.Cleanup(func() {
		_ = errors.Join(tracers.Shutdown(context.Background()), meters.Shutdown(context.Background()))
	})
	f.tracer = tracers.Tracer("the program")
	var err error
	f.watch, err = redlockotel.New(append(opts,
		redlockotel.WithTracerProvider(tracers), redlockotel.WithMeterProvider(meters))...)
	if err != nil {
		t.Fatal(err)
	}
	f.Locker, f.masters = redlocktest.NewLocker(t, 3, redlock.WithTrace(f.watch.Trace()))
	if f.stop, err = f.watch.Watch(f.Locker); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return f
}

func (f *deployment) lock(name string) *redlock.Lock {
	f.Helper()
	return must.Get(f.Lock(f.Context(), name))(f)
}

// after waits for d in virtual time, and then until all other goroutines wait.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// tree returns the ended spans, each with the names of its ancestors.
func (f *deployment) tree() (list []string) {
	synctest.Wait() // calls are reported a little after their end
	names, parents := map[trace.SpanID]string{}, map[trace.SpanID]trace.SpanID{}
	for _, s := range f.spans.GetSpans() {
		names[s.SpanContext.SpanID()], parents[s.SpanContext.SpanID()] = s.Name, s.Parent.SpanID()
	}
	for id, name := range names {
		for id = parents[id]; id.IsValid(); id = parents[id] {
			name = names[id] + " > " + name
		}
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// last returns the span that ended last, and its attributes.
func (f *deployment) last() (tracetest.SpanStub, map[string]string) {
	f.Helper()
	synctest.Wait() // calls are reported a little after their end
	all := f.spans.GetSpans()
	if len(all) == 0 {
		f.Fatal("no span has ended")
	}
	s, attrs := all[len(all)-1], map[string]string{}
	for _, a := range s.Attributes {
		attrs[string(a.Key)] = a.Value.String()
	}
	return s, attrs
}

// has fails the test if a series does not have the given value. The key is the name, the unit and the attributes of the
// series. The value is the value of a sum or a gauge, or the count of a histogram.
func (f *deployment) has(want map[string]float64) {
	f.Helper()
	got := f.series()
	for id, v := range want {
		if is, there := got[id]; !there || is != v {
			f.Errorf("%s: want %v; got %v, exists: %v; all series: %v", id, v, is, there, got)
		}
	}
}

func (f *deployment) series() map[string]float64 {
	f.Helper()
	synctest.Wait() // votes after the deciding one arrive later
	var all metricdata.ResourceMetrics
	must.Do(f, f.reader.Collect(context.Background(), &all))
	got := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			note := func(at attribute.Set, v float64) {
				got[fmt.Sprintf("%s %s {%s}", m.Name, m.Unit, at.Encoded(attribute.DefaultEncoder()))] = v
			}
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					note(p.Attributes, float64(p.Count))
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					note(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					note(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					note(p.Attributes, p.Value)
				}
			default:
				f.Fatalf("the metric %s has the unexpected type %T", m.Name, data)
			}
		}
	}
	return got
}

// The span of a call is a child of the span of the caller. The spans of the calls of a Do are children of the span of
// the Do, which has the token of its lock, to find the writes that carry it.
func TestSpansHaveParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t)
		ctx, request := f.tracer.Start(t.Context(), "request")
		var token int64
		err := f.Do(ctx, "orders", func(ctx context.Context, lock *redlock.Lock) error {
			token = lock.Token()
			ctx, span := f.tracer.Start(ctx, "update")
			defer span.End()
			k, err := f.Lock(ctx, "customers")
			if err != nil {
				return err
			}
			return errors.Join(k.Extend(ctx), k.Unlock(ctx))
		})
		request.End()
		if err != nil {
			t.Fatal(err)
		}
		const inner = "request > redlock do > update > redlock "
		if got, want := f.tree(), []string{
			"request", "request > redlock do", "request > redlock do > redlock lock", "request > redlock do > redlock unlock",
			"request > redlock do > update", inner + "extend", inner + "lock", inner + "unlock",
		}; !slices.Equal(got, want) {
			t.Errorf("the spans are %q, want %q", got, want)
		}
		for _, s := range f.spans.GetSpans() {
			if s.Status.Code != codes.Unset {
				t.Errorf("the span %s has the unexpected status %+v", s.Name, s.Status)
			}
			if at := attribute.NewSet(s.Attributes...); s.Name == "redlock do" {
				if v, _ := at.Value("redlock.token"); v.AsInt64() != token {
					t.Errorf("the span of the Do has the attributes %v, want the token %d", s.Attributes, token)
				}
			}
		}
	})
}

func nothing(context.Context, *redlock.Lock) error { return nil }

// Each Do ends its own span, also one that a shutdown refuses within the function of another Do.
func TestRefusedDoHasItsOwnSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t)
		shut := make(chan error)
		must.Do(t, f.Do(t.Context(), "outer", func(ctx context.Context, lock *redlock.Lock) error {
			must.Do(t, lock.Unlock(context.WithoutCancel(ctx)))
			go func() { shut <- f.Shutdown(t.Context()) }()
			after(time.Second) // Shutdown waits for this function
			err := f.Do(context.WithoutCancel(ctx), "inner", func(context.Context, *redlock.Lock) error { return nil })
			if !errors.Is(err, redlock.ErrClosed) || !redlock.NotRun(err) {
				t.Errorf("after Shutdown, Do returned %v", err)
			}
			time.Sleep(time.Second)
			return nil
		}))
		must.Do(t, <-shut)
		if got, want := f.tree(), []string{
			"redlock do", "redlock do > redlock do", "redlock do > redlock lock", "redlock do > redlock unlock",
		}; !slices.Equal(got, want) {
			t.Errorf("the spans are %q, want %q", got, want)
		}
		s, at := f.last()
		if took := s.EndTime.Sub(s.StartTime); s.Name != "redlock do" || at["redlock.name"] != "outer" ||
			took != 2*time.Second || s.Status.Code != codes.Unset {
			t.Errorf("the last span is %s of %v, took %v, and has the status %+v", s.Name, at, took, s.Status)
		}
	})
}

// The span of a call contains the name, the place in the queue, the attempts, the votes and the token, the time for
// which the lock was held, and the error.
func TestSpansSayWhatACallTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t)
		k := f.lock("orders:42")
		_, at := f.last()
		for key, want := range map[string]string{
			"redlock.name": "orders:42", "redlock.attempts": "1", "redlock.masters": "3",
			"redlock.token": fmt.Sprint(k.Token()), "redlock.place": "", "error.type": "",
		} {
			if at[key] != want {
				t.Errorf("%s is %q, want %q", key, at[key], want)
			}
		}
		waited := make(chan error)
		go func() {
			next, err := f.Lock(t.Context(), "orders:42")
			waited <- errors.Join(err, next.Unlock(t.Context()))
		}()
		after(3 * time.Second)
		if _, err := f.TryLock(t.Context(), "orders:42"); err == nil {
			t.Fatal("two clients hold the lock")
		}
		if s, at := f.last(); s.Name != "redlock try lock" || at["error.type"] != "held" || s.Status.Code != codes.Unset {
			t.Errorf("the span is %s with the attributes %v and the status %v", s.Name, at, s.Status)
		}
		if err := f.TryDo(t.Context(), "orders:42", nothing); !redlock.NotRun(err) {
			t.Fatalf("TryDo returned %v", err)
		}
		if s, at := f.last(); s.Name != "redlock do" || at["error.type"] != "held" || s.Status.Code != codes.Unset {
			t.Errorf("the span is %s with the attributes %v and the status %v", s.Name, at, s.Status)
		}
		if err := f.Do(t.Context(), "orders:42", nothing, redlock.WithTries(1)); !redlock.NotRun(err) {
			t.Fatalf("Do returned %v", err)
		}
		if s, at := f.last(); s.Name != "redlock do" || at["error.type"] != "held" || s.Status.Code != codes.Error {
			t.Errorf("the span is %s with the attributes %v and the status %v", s.Name, at, s.Status)
		}
		must.Do(t, k.Unlock(t.Context()))
		must.Do(t, <-waited)
		synctest.Wait() // the events of both unlocks are reported
		seen := 0
		for _, s := range f.spans.GetSpans() {
			text := fmt.Sprint(s.Attributes)
			took := s.EndTime.Sub(s.StartTime)
			if s.Name == "redlock lock" && took == 3*time.Second && strings.Contains(text, "redlock.place") ||
				s.Name == "redlock unlock" && strings.Contains(text, "redlock.held") {
				seen++
			}
		}
		if seen != 2 {
			t.Errorf("the spans do not contain a wait of three seconds and a hold: %+v", f.spans.GetSpans())
		}
		err := k.Unlock(t.Context())
		if s, at := f.last(); at["error.type"] != "released" || s.Status.Code != codes.Error ||
			s.Status.Description != err.Error() || at["redlock.held"] != "" {
			t.Errorf("the span of a second unlock has the attributes %v and the status %v, want the error and no hold", at,
				s.Status)
		}
	})
}

// The metrics use the names and units of the semantic conventions where these define them, and count each event once.
func TestMetricsOfLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t)
		a, b := f.lock("a"), f.lock("b")
		if _, err := f.TryLock(t.Context(), "a"); err == nil {
			t.Fatal("two clients hold the lock")
		}
		f.has(map[string]float64{
			"redlock.held {lock} {}": 2, "redlock.wait.duration s {redlock.operation=lock}": 2,
			"redlock.wait.duration s {error.type=held,redlock.operation=try lock}": 1, "redlock.attempts {attempt} {}": 2,
		})
		after(time.Second)
		must.Do(t, a.Unlock(t.Context()))
		f.has(map[string]float64{"redlock.held {lock} {}": 1, "redlock.hold.duration s {}": 1})
		after(3 * time.Second) // a lock is extended every third of its TTL
		f.has(map[string]float64{"redlock.extensions {extension} {}": 1})
		f.masters.Lose("b")
		after(4 * time.Second)
		if b.Err() == nil {
			t.Fatal("the lock is still held after it was lost")
		}
		f.has(map[string]float64{
			"redlock.waiting {call} {redlock.reason=held}": 0, "redlock.waiting {call} {redlock.reason=no_quorum}": 0,
			"redlock.held {lock} {}": 0, "redlock.hold.duration s {}": 2, "redlock.lost {lock} {error.type=lost}": 1,
		})
	})
}

// Each call of SetValue has a span with its outcome, and is counted.
func TestValueChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t)
		k := f.lock("a")
		must.Do(t, k.SetValue(t.Context(), "v1"))
		if s, at := f.last(); s.Name != "redlock set value" || at["redlock.name"] != "a" || s.Status.Code != codes.Unset ||
			at["redlock.token"] != strconv.FormatInt(k.Token(), 10) {
			t.Errorf("the span is %s with the attributes %v and the status %v", s.Name, at, s.Status)
		}
		must.Do(t, k.Unlock(t.Context()))
		if err := k.SetValue(t.Context(), "v2"); !errors.Is(err, redlock.ErrReleased) {
			t.Fatal(err)
		}
		if s, at := f.last(); s.Name != "redlock set value" || at["error.type"] != "released" ||
			s.Status.Code != codes.Error {
			t.Errorf("the span is %s with the attributes %v and the status %v", s.Name, at, s.Status)
		}
		f.has(map[string]float64{
			"redlock.value.changes {call} {}": 1, "redlock.value.changes {call} {error.type=released}": 1,
		})
	})
}

// The metrics contain the votes, the latency and the state of each master.
func TestMetricsOfMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t)
		k := f.lock("a")
		at := func(i int) string { return fmt.Sprintf("server.address=master-%d,server.port=6379", i+1) }
		want := map[string]float64{"redlock.quorum 1 {}": 1}
		for i := range 3 {
			want["redlock.master.voting {master} {"+at(i)+"}"] = 1
			want["redlock.master.pending_releases {release} {"+at(i)+"}"] = 0
			want["redlock.master.quarantine.left s {"+at(i)+"}"] = 0
			want["redlock.votes {vote} {redlock.vote=granted,"+at(i)+"}"] = 1
			want["db.client.operation.duration s {db.operation.name=EVALSHA,db.system.name=redis,"+at(i)+"}"] = 1
		}
		f.has(want)
		f.masters.Master(0).Stop()
		after(time.Millisecond)
		must.Do(t, k.Unlock(t.Context()))
		synctest.Wait()
		f.has(map[string]float64{
			"redlock.quorum 1 {}": 1, "redlock.master.voting {master} {" + at(0) + "}": 0,
			"redlock.master.pending_releases {release} {" + at(0) + "}":                                                     1,
			"redlock.votes {vote} {redlock.vote=failed," + at(0) + "}":                                                      1,
			"db.client.operation.duration s {db.operation.name=EVALSHA,db.system.name=redis," + at(0) + "}":                 1,
			"db.client.operation.duration s {db.operation.name=EVALSHA,db.system.name=redis,error.type=down," + at(0) + "}": 1,
		})
		f.masters.Master(1).Stop()
		f.masters.Master(1).Restart(false) // the master is empty, so it is put into quarantine
		after(10 * time.Second)
		f.has(map[string]float64{"redlock.quorum 1 {}": 0})
		if left := f.series()["redlock.master.quarantine.left s {"+at(1)+"}"]; left < 15 || left > 25 {
			t.Errorf("after ten seconds the remaining quarantine is %v s, want 15 to 25 s", left)
		}
		if err := f.stop(); err != nil {
			t.Error(err)
		}
		if _, there := f.series()["redlock.quorum 1 {}"]; there {
			t.Error("the masters are still reported after stop")
		}
	})
}

// Nothing is sent to a master in quarantine. The metrics count the missing vote of this master, but record no latency.
func TestMasterInQuarantineHasNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t)
		f.masters.Master(0).Stop()
		f.masters.Master(0).Restart(false)
		after(5 * time.Second)
		f.lock("a")
		const at = "server.address=master-1,server.port=6379"
		f.has(map[string]float64{"redlock.votes {vote} {redlock.vote=not voting," + at + "}": 1})
		for series := range f.series() {
			if strings.HasPrefix(series, "db.client.operation.duration") && strings.Contains(series, at) {
				t.Errorf("a latency was recorded: %s", series)
			}
		}
	})
}

// The metric of a failed operation contains the type of the error and, after an error reply, the status code.
func TestFailedOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t)
		f.masters.Master(0).Refuse("OOM command not allowed when used memory > 'maxmemory'.")
		f.masters.Master(1).Hang()
		if _, err := f.TryLock(t.Context(), "a"); !errors.Is(err, redlock.ErrNoQuorum) {
			t.Error(err)
		}
		after(time.Second)
		series := f.series()
		for _, want := range []string{
			"db.operation.name=EVALSHA,db.response.status_code=OOM,db.system.name=redis,error.type=OOM,server.address=master-1,",
			"db.operation.name=EVALSHA,db.system.name=redis,error.type=timeout,server.address=master-2,",
			"db.operation.name=EVALSHA,db.system.name=redis,server.address=master-3,",
		} {
			if series["db.client.operation.duration s {"+want+"server.port=6379}"] == 0 {
				t.Errorf("there is no series with %s in %v", want, series)
			}
		}
	})
}

// The scope of spans and metrics contains the schema URL of the conventions. The test does not check the version of the
// module, because the version is unknown in the tests of the module itself.
func TestScopeHasASchema(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t)
		k := f.lock("a")
		if s, _ := f.last(); s.InstrumentationScope.SchemaURL != semconv.SchemaURL {
			t.Errorf("the scope of the spans is %+v, want the schema URL of the conventions", s.InstrumentationScope)
		}
		var all metricdata.ResourceMetrics
		must.Do(t, errors.Join(f.reader.Collect(t.Context(), &all), k.Unlock(t.Context())))
		for _, m := range all.ScopeMetrics {
			if m.Scope.SchemaURL != semconv.SchemaURL {
				t.Errorf("the scope of the metrics is %+v, want the schema URL of the conventions", m.Scope)
			}
		}
	})
}

// The name of a lock is an attribute of metrics only with WithNames.
func TestWithNamesAddsAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t, redlockotel.WithNames(func(name string) string {
			kind, _, _ := strings.Cut(name, ":")
			return kind
		}))
		for _, name := range []string{"order:1", "order:2", "user:1"} {
			must.Do(t, f.lock(name).Unlock(t.Context()))
		}
		f.has(map[string]float64{
			"redlock.held {lock} {redlock.name=order}": 0, "redlock.hold.duration s {redlock.name=order}": 2,
			"redlock.wait.duration s {redlock.name=user,redlock.operation=lock}": 1,
			"redlock.attempts {attempt} {redlock.name=order}":                    2,
		})
		plain := observed(t)
		must.Do(t, plain.lock("order:1").Unlock(t.Context()))
		for id := range plain.series() {
			if strings.Contains(id, "name=order") {
				t.Errorf("the series %s has a name without WithNames", id)
			}
		}
	})
}
