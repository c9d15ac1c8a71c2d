package redlockprom

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlock-go/redlock/internal/diagnose"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// The upper bounds of the histogram buckets, in seconds.
var (
	waitBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	holdBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600}
	voteBuckets = []float64{.0002, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
)

// The metrics that are read from a Locker at each scrape.
var (
	waiting = prometheus.NewDesc("redlock_waiting", "Calls that wait for a lock now.", []string{"reason"}, nil)
	voting  = prometheus.NewDesc("redlock_master_voting", "1 if the master votes and is not failing, else 0.",
		[]string{"master"}, nil)
	state = prometheus.NewDesc("redlock_master_state", "1 for the current state of the master, 0 for other states.",
		[]string{"master", "state"}, nil)
	epoch = prometheus.NewDesc("redlock_master_epoch", "The epoch of the admission record of the master.",
		[]string{"master", "list"}, nil)
	pending = prometheus.NewDesc("redlock_master_pending_releases",
		"Releases that the master has not received yet.", []string{"master"}, nil)
	quarantine = prometheus.NewDesc("redlock_master_quarantine_left_seconds",
		"Remaining quarantine of the master.", []string{"master"}, nil)
	quorum = prometheus.NewDesc("redlock_quorum", "1 if a quorum of masters can grant a lock, else 0.", nil, nil)
	spare  = prometheus.NewDesc("redlock_spare_masters",
		"Masters that may still fail before no lock can be acquired; -1 if none can be now.", nil, nil)
	unusable = prometheus.NewDesc("redlock_file_unusable",
		"1 if the client cannot use the masters in its file, else 0.", nil, nil)
	unconfirmed = prometheus.NewDesc("redlock_unconfirmed_releases_total",
		"Releases that no quorum confirmed in time.", nil, nil)
	dropped = prometheus.NewDesc("redlock_events_dropped_total",
		"Log records and trace events that were dropped.", nil, nil)
	panics = prometheus.NewDesc("redlock_callback_panics_total", "Callbacks that panicked.", nil, nil)
)

// states lists the states of redlockinfo.Master.
var states = []redlockinfo.State{
	redlockinfo.StateConnecting, redlockinfo.StateDown, redlockinfo.StateQuarantine, redlockinfo.StateVoting,
	redlockinfo.StateFailing, redlockinfo.StateBlocked,
}

// A Collector collects the metrics of one Locker. It implements [prometheus.Collector]. If a program has several
// Lockers, create a Collector for each Locker, and register each Collector with a distinct label; see
// [prometheus.WrapRegistererWith].
type Collector struct {
	names  func(name string) string // nil: metrics have no name labels
	locker atomic.Pointer[redlock.Locker]
	held   *prometheus.Desc
	known  sync.Map // name labels of locks that were held; their series continue with 0

	waits, holds, latency           *prometheus.HistogramVec
	lost, attempts, extended, votes *prometheus.CounterVec
	values                          *prometheus.CounterVec
}

// An Option configures a [Collector].
type Option func(*Collector)

// WithNames adds the label name to the metrics of waits, holds, losses, attempts, extensions, value changes and held
// locks. The value of the label is the result of f for the name of the lock. f must have few distinct results. f is
// called concurrently, and also with invalid names.
func WithNames(f func(name string) string) Option { return func(c *Collector) { c.names = f } }

// New returns a Collector. The metrics of events do not change until a Locker is created with the Trace of the
// Collector. The metrics that are read from the Locker are absent until Watch is called.
func New(opts ...Option) *Collector {
	c := &Collector{}
	for _, o := range opts {
		o(c)
	}
	named := func(labels ...string) []string {
		if c.names != nil {
			labels = append(labels, "name")
		}
		return labels
	}
	histogram := func(name, help string, buckets []float64, labels []string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	counter := func(name, help string, labels []string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	c.waits = histogram("redlock_wait_seconds", "Duration of calls that acquire a lock.", waitBuckets,
		named("op", "outcome"))
	c.holds = histogram("redlock_hold_seconds", "Time for which locks were held.", holdBuckets, named())
	c.latency = histogram("redlock_vote_seconds", "Response time of the master.", voteBuckets, []string{"master"})
	c.held = prometheus.NewDesc("redlock_held", "Locks that are held now.", named(), nil)
	c.lost = counter("redlock_lost_total", "Locks that ended before their release.", named("reason"))
	c.attempts = counter("redlock_attempts_total", "Rounds that tried to acquire a lock.", named("outcome"))
	c.extended = counter("redlock_extensions_total", "Rounds that tried to extend a held lock.", named("outcome"))
	c.values = counter("redlock_value_changes_total", "Calls that set the value of a lock.", named("outcome"))
	c.votes = counter("redlock_votes_total", "Votes of the master, including refusals and failures.",
		[]string{"master", "vote"})
	if c.names == nil { // start the series at 0, so that the first event is an increase
		c.holds.WithLabelValues()
		c.lost.WithLabelValues(redlock.Outcome(redlock.ErrLost))
		c.lost.WithLabelValues(redlock.Outcome(redlock.ErrMaxHold))
	}
	return c
}

// Trace returns the callbacks for [redlock.WithTrace] of one Locker.
func (c *Collector) Trace() *redlockinfo.Trace {
	return &redlockinfo.Trace{Event: func(e redlockinfo.Event) {
		switch e.Kind {
		case redlockinfo.KindCall:
			switch e.Op {
			case redlockinfo.OpLock, redlockinfo.OpTryLock, redlockinfo.OpRLock, redlockinfo.OpTryRLock,
				redlockinfo.OpAcquire, redlockinfo.OpTryAcquire, redlockinfo.OpImport, redlockinfo.OpDowngrade:
				c.waits.WithLabelValues(c.labels(e.Name, string(e.Op), redlock.Outcome(e.Err))...).Observe(e.Elapsed.Seconds())
			case redlockinfo.OpSetValue:
				c.values.WithLabelValues(c.labels(e.Name, redlock.Outcome(e.Err))...).Inc()
			}
		case redlockinfo.KindVote:
			c.vote(e)
		case redlockinfo.KindAttempt:
			c.attempts.WithLabelValues(c.labels(e.Name, redlock.Outcome(e.Err))...).Inc()
		case redlockinfo.KindExtended:
			c.extended.WithLabelValues(c.labels(e.Name, redlock.Outcome(e.Err))...).Inc()
		case redlockinfo.KindReleased:
			c.over(e)
		case redlockinfo.KindLost:
			c.over(e)
			c.lost.WithLabelValues(c.labels(e.Name, redlock.Outcome(e.Err))...).Inc()
		}
	}}
}

// Watch sets the Locker from which Collect reads the held locks, the counts of [redlock.Stats], and the state of the
// masters. After Watch(nil), Collect reads no Locker. Call Watch(nil) before you discard l.
func (c *Collector) Watch(l *redlock.Locker) { c.locker.Store(l) }

// labels returns values, followed by the name label of the lock if metrics have name labels.
func (c *Collector) labels(name string, values ...string) []string {
	if c.names != nil {
		values = append(values, strings.ToValidUTF8(c.names(name), "\ufffd"))
	}
	return values
}

func (c *Collector) over(i redlockinfo.Event) {
	labels := c.labels(i.Name)
	c.holds.WithLabelValues(labels...).Observe(i.Held.Seconds())
	if c.names != nil {
		c.known.Store(labels[0], nil)
	}
}

func (c *Collector) vote(v redlockinfo.Event) {
	c.votes.WithLabelValues(v.Master, string(v.Vote)).Inc()
	if v.Err == nil {
		c.latency.WithLabelValues(v.Master).Observe(v.Elapsed.Seconds())
	}
}

func (c *Collector) vecs() []prometheus.Collector {
	return []prometheus.Collector{c.waits, c.holds, c.latency, c.lost, c.attempts, c.extended, c.values, c.votes}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, v := range c.vecs() {
		v.Describe(to)
	}
	for _, d := range []*prometheus.Desc{
		c.held, waiting, unconfirmed, dropped, panics, voting, state, epoch, pending, quarantine, quorum, spare,
		unusable,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector. Collect does not wait for the masters.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	for _, v := range c.vecs() {
		v.Collect(to)
	}
	l := c.locker.Load()
	if l == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	total := func(d *prometheus.Desc, n uint64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	stats := l.Stats()
	c.collectHeld(to, stats.Held)
	for reason, n := range stats.Waiting {
		gauge(waiting, float64(n), reason)
	}
	total(unconfirmed, stats.Unconfirmed)
	total(dropped, stats.Dropped)
	total(panics, stats.Panics)
	gauge(spare, float64(stats.Spare))
	gauge(unusable, one(stats.FileUnusable))
	masters := admin.Of(l).Masters()
	for _, m := range diagnose.Records(masters) {
		gauge(epoch, float64(m.Epoch), m.Addr, m.List)
	}
	for _, m := range diagnose.Servers(masters) {
		gauge(voting, one(m.State == redlockinfo.StateVoting), m.Addr)
		for _, s := range states {
			gauge(state, one(m.State == s), m.Addr, string(s))
		}
		gauge(pending, float64(m.Pending), m.Addr)
		gauge(quarantine, m.Left.Seconds(), m.Addr)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel() // so that WaitReady returns immediately
	gauge(quorum, one(l.WaitReady(over) == nil))
}

// collectHeld sends the number of held names for each name label. Labels of names that were held before are sent with
// 0.
func (c *Collector) collectHeld(to chan<- prometheus.Metric, names []string) {
	counts := map[string]int{}
	if c.names == nil {
		counts[""] = len(names)
	} else {
		for _, name := range names {
			label := c.labels(name)[0]
			c.known.Store(label, nil)
			counts[label]++
		}
		c.known.Range(func(label, _ any) bool {
			counts[label.(string)] += 0
			return true
		})
	}
	for label, n := range counts {
		var labels []string
		if c.names != nil {
			labels = []string{label}
		}
		to <- prometheus.MustNewConstMetric(c.held, prometheus.GaugeValue, float64(n), labels...)
	}
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
