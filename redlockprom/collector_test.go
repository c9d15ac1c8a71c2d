package redlockprom_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlocktest"
	"github.com/redlock-go/redlock/redlockprom"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A deployment is a Locker over three masters in memory, with the metrics that Prometheus reads from it.
type deployment struct {
	*testing.T
	*redlock.Locker
	masters  *redlocktest.Masters
	registry *prometheus.Registry
	metrics  *redlockprom.Collector
}

func observed(t *testing.T, opts ...redlockprom.Option) *deployment {
	t.Helper()
	f := &deployment{T: t, registry: prometheus.NewPedanticRegistry(), metrics: redlockprom.New(opts...)}
	f.Locker, f.masters = redlocktest.NewLocker(t, 3, redlock.WithTrace(f.metrics.Trace()))
	f.metrics.Watch(f.Locker)
	must.Do(t, f.registry.Register(f.metrics))
	synctest.Wait()
	return f
}

func (f *deployment) lock(name string) *redlock.Lock {
	f.Helper()
	return must.Get(f.Lock(f.Context(), name))(f)
}

// series returns the values of all series by name and labels. The value of a histogram is the count of its
// observations.
func (f *deployment) series() map[string]float64 {
	f.Helper()
	synctest.Wait() // votes after the deciding one arrive later
	families := must.Get(f.registry.Gather())(f)
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			id := family.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch family.GetType() {
			case dto.MetricType_HISTOGRAM:
				all[id] = float64(m.GetHistogram().GetSampleCount())
			case dto.MetricType_COUNTER:
				all[id] = m.GetCounter().GetValue()
			default:
				all[id] = m.GetGauge().GetValue()
			}
		}
	}
	return all
}

// has fails the test if a series does not have the given value.
func (f *deployment) has(want map[string]float64) {
	f.Helper()
	got := f.series()
	for id, v := range want {
		if is, there := got[id]; !there || is != v {
			f.Errorf("%s: want %v; got %v, exists: %v", id, v, is, there)
		}
	}
}

// after waits for d in virtual time, and then until all other goroutines wait.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Each operation on a lock is counted exactly once. The names and units follow the conventions of Prometheus.
func TestCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t)
		a, b := f.lock("a"), f.lock("b")
		if _, err := f.TryLock(t.Context(), "a"); err == nil {
			t.Fatal("two clients hold the lock")
		}
		f.has(map[string]float64{
			"redlock_held{}": 2, "redlock_hold_seconds{}": 0, "redlock_wait_seconds{op=lock,outcome=ok}": 2,
			"redlock_wait_seconds{op=try lock,outcome=held}": 1, "redlock_attempts_total{outcome=ok}": 2,
			"redlock_lost_total{reason=lost}": 0, "redlock_lost_total{reason=max_hold}": 0,
		})
		must.Do(t, a.Unlock(t.Context()))
		f.has(map[string]float64{"redlock_held{}": 1, "redlock_hold_seconds{}": 1})
		f.masters.Lose("b")
		after(4 * time.Second) // the next extension detects the loss
		if b.Err() == nil {
			t.Fatal("the lock is still held after it was lost")
		}
		f.has(map[string]float64{
			"redlock_held{}": 0, "redlock_hold_seconds{}": 2, "redlock_lost_total{reason=lost}": 1,
			"redlock_lost_total{reason=max_hold}": 0,
		})
		problems, err := testutil.GatherAndLint(f.registry)
		if err != nil || len(problems) > 0 {
			t.Errorf("the linter found the problems %+v, %v", problems, err)
		}
	})
}

// Extensions and calls of SetValue are counted with their outcomes, also of a value that is refused.
func TestExtensionsAndValuesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t)
		k := f.lock("a")
		must.Do(t, k.SetValue(t.Context(), "v1"), k.SetValue(t.Context(), "v2"))
		if err := k.SetValue(t.Context(), strings.Repeat("x", 1025)); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("SetValue of 1025 bytes returned %v", err)
		}
		after(4 * time.Second) // a held lock is extended every third of its TTL
		f.has(map[string]float64{
			"redlock_value_changes_total{outcome=ok}": 2, "redlock_value_changes_total{outcome=invalid}": 1,
			"redlock_extensions_total{outcome=ok}": 1,
		})
		for i := range 2 {
			f.masters.Master(i).Hang()
		}
		after(4 * time.Second)
		f.has(map[string]float64{"redlock_extensions_total{outcome=ok}": 1})
		if n := f.series()["redlock_extensions_total{outcome=no_quorum}"]; n == 0 {
			t.Error("two of three masters hang, but no failed extension is counted")
		}
	})
}

// The metrics contain the votes, the latency and the state of each master while a Locker is watched.
func TestEachMasterHasMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t)
		f.metrics.Watch(nil)
		k := f.lock("a")
		addr := func(i int) string { return fmt.Sprintf("master-%d:6379", i+1) }
		if _, there := f.series()["redlock_quorum{}"]; there {
			t.Error("the masters are reported although no Locker is watched")
		}
		f.metrics.Watch(f.Locker)
		want := map[string]float64{"redlock_quorum{}": 1, "redlock_spare_masters{}": 1, "redlock_file_unusable{}": 0}
		for i := range 3 {
			want["redlock_master_voting{master="+addr(i)+"}"] = 1
			want["redlock_master_pending_releases{master="+addr(i)+"}"] = 0
			list := admin.Of(f.Locker).Masters()[i].List
			if len(list) != 8 {
				t.Errorf("the hash of the lists of %s is %q, want eight digits", addr(i), list)
			}
			want["redlock_master_epoch{list="+list+",master="+addr(i)+"}"] = 0
			want["redlock_master_state{master="+addr(i)+",state=voting}"] = 1
			want["redlock_master_state{master="+addr(i)+",state=failing}"] = 0
			want["redlock_master_quarantine_left_seconds{master="+addr(i)+"}"] = 0
			want["redlock_votes_total{master="+addr(i)+",vote=granted}"] = 1
			want["redlock_vote_seconds{master="+addr(i)+"}"] = 1
		}
		f.has(want)

		f.masters.Master(0).Stop()
		after(time.Millisecond)
		f.has(map[string]float64{
			"redlock_master_voting{master=" + addr(0) + "}": 0, "redlock_quorum{}": 1, "redlock_spare_masters{}": 0,
			"redlock_master_state{master=" + addr(0) + ",state=down}":   1,
			"redlock_master_state{master=" + addr(0) + ",state=voting}": 0,
			"redlock_waiting{reason=held}":                              0, "redlock_waiting{reason=no_quorum}": 0,
		})
		must.Do(t, k.Unlock(t.Context()))
		synctest.Wait()
		f.has(map[string]float64{
			"redlock_master_pending_releases{master=" + addr(0) + "}": 1,
			"redlock_votes_total{master=" + addr(0) + ",vote=failed}": 1, "redlock_vote_seconds{master=" + addr(0) + "}": 1,
		})
		f.masters.Master(1).Stop()
		after(time.Millisecond)
		f.has(map[string]float64{"redlock_quorum{}": 0, "redlock_spare_masters{}": -1})
		f.masters.Master(1).Restart(false) // the master is empty, so it is put into quarantine
		after(10 * time.Second)
		f.has(map[string]float64{"redlock_quorum{}": 0, "redlock_master_voting{master=" + addr(1) + "}": 0})
		left := f.series()["redlock_master_quarantine_left_seconds{master="+addr(1)+"}"]
		if left < 15 || left > 25 {
			t.Errorf("after ten seconds the remaining quarantine is %v s, want 15 to 25 s", left)
		}
		f.masters.Master(0).Restart(true)
		after(time.Minute)
		f.has(map[string]float64{
			"redlock_quorum{}": 1, "redlock_master_quarantine_left_seconds{master=" + addr(1) + "}": 0,
			"redlock_master_pending_releases{master=" + addr(0) + "}": 0,
		})
	})
}

// The name of a lock is a label only with WithNames. A name that is not UTF-8 does not break the metrics.
func TestNamesAreLabelsOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := observed(t, redlockprom.WithNames(func(name string) string {
			kind, _, _ := strings.Cut(name, ":")
			return kind
		}))
		if _, err := f.Lock(t.Context(), "\xff:1"); err != nil {
			t.Logf("a name that is not UTF-8 is refused: %v", err)
		}
		for _, name := range []string{"order:1", "order:2", "user:1"} {
			must.Do(t, f.lock(name).Unlock(t.Context()))
		}
		f.has(map[string]float64{
			"redlock_held{name=order}": 0, "redlock_hold_seconds{name=order}": 2, "redlock_hold_seconds{name=user}": 1,
			"redlock_wait_seconds{name=order,op=lock,outcome=ok}": 2, "redlock_attempts_total{name=order,outcome=ok}": 2,
		})
		for id := range observed(t).series() {
			if strings.Contains(id, "name=") {
				t.Errorf("the series %s has a name label without WithNames", id)
			}
		}
	})
}

// A master beside a cluster is in the shard of each bucket, and has one series all the same: a registry refuses
// everything if a series comes twice.
func TestMasterOfSeveralShardsHasOneSeries(t *testing.T) {
	metrics := redlockprom.New()
	locker := must.Get(redlock.Open([]string{"redis+cluster://127.0.0.1:1?buckets=2", "redis://127.0.0.1:1?name=a"},
		redlock.WithLogger(slog.New(slog.DiscardHandler))))(t)
	defer locker.Close()
	metrics.Watch(locker)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	if n, err := testutil.GatherAndCount(registry, "redlock_master_voting"); n != 3 || err != nil {
		t.Errorf("%d masters have a series, want 3: %v", n, err)
	}
}
