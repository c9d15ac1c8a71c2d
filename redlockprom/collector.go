package redlockprom

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlock-go/redlock/redlock"
)

// The upper bounds of the buckets, in seconds.
var (
	waitBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	holdBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600}
	voteBuckets = []float64{.0002, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
)

// What is read of a Locker when it is scraped.
var (
	voting = prometheus.NewDesc("redlock_master_voting", "1 where the master votes, else 0.", []string{"master"}, nil)
	owed   = prometheus.NewDesc("redlock_master_owed_releases",
		"Names of which the master still has to get a release.", []string{"master"}, nil)
	quarantine = prometheus.NewDesc("redlock_master_quarantine_left_seconds",
		"How long the quarantine of the master still lasts.", []string{"master"}, nil)
	quorum      = prometheus.NewDesc("redlock_quorum", "1 where a quorum of masters votes, else 0.", nil, nil)
	unconfirmed = prometheus.NewDesc("redlock_unconfirmed_releases_total",
		"Releases that no quorum confirmed in time.", nil, nil)
	dropped = prometheus.NewDesc("redlock_events_dropped_total",
		"Log records and trace events that were dropped.", nil, nil)
	panics = prometheus.NewDesc("redlock_callback_panics_total", "Callbacks that panicked.", nil, nil)
)

// A Collector is the metrics of one Locker. It implements [prometheus.Collector]. For several Lockers of a program make
// one each, and register each with a label of its own; see [prometheus.WrapRegistererWith].
type Collector struct {
	names  func(name string) string // nil: names are no labels
	locker atomic.Pointer[redlock.Locker]
	held   *prometheus.Desc
	known  sync.Map // the labels of names that have been held: they go on at 0

	waits, holds, latency *prometheus.HistogramVec
	lost, attempts, votes *prometheus.CounterVec
}

// An Option sets one thing for a [Collector].
type Option func(*Collector)

// WithNames labels waits, holds, losses, attempts and what is held with the name that f has for the name of a lock. f
// must have few results, and is called concurrently, also with names that are invalid.
func WithNames(f func(name string) string) Option { return func(c *Collector) { c.names = f } }

// New makes a Collector. Its metrics are 0 until a Locker is made with its Trace; those that are read of the Locker are
// absent until Watch is called.
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
	c.waits = histogram("redlock_wait_seconds", "How long calls took that ask for a lock.", waitBuckets,
		named("op", "outcome"))
	c.holds = histogram("redlock_hold_seconds", "How long locks were held.", holdBuckets, named())
	c.latency = histogram("redlock_vote_seconds", "How long the master took to answer.", voteBuckets, []string{"master"})
	c.held = prometheus.NewDesc("redlock_held", "Locks that are held now.", named(), nil)
	c.lost = counter("redlock_lost_total", "Locks that ended before their release.", named("reason"))
	c.attempts = counter("redlock_attempts_total", "Rounds that asked the masters for a lock.", named("outcome"))
	c.votes = counter("redlock_votes_total", "What the master said.", []string{"master", "vote"})
	if c.names == nil { // so that the first one is an increase
		c.holds.WithLabelValues()
		c.lost.WithLabelValues(redlock.Outcome(redlock.ErrLost))
		c.lost.WithLabelValues(redlock.Outcome(redlock.ErrMaxHold))
	}
	return c
}

// Trace is for [redlock.WithTrace]. Give it to one Locker.
func (c *Collector) Trace() *redlock.Trace {
	return &redlock.Trace{
		Call: func(i redlock.CallInfo) {
			switch i.Op {
			case "lock", "try lock", "rlock", "try rlock", "import", "downgrade":
				c.waits.WithLabelValues(c.labels(i.Name, i.Op, redlock.Outcome(i.Err))...).Observe(i.Elapsed.Seconds())
			}
		},
		Attempt: func(i redlock.AttemptInfo) {
			c.attempts.WithLabelValues(c.labels(i.Name, redlock.Outcome(i.Err))...).Inc()
		},
		Vote:     c.vote,
		Released: c.over,
		Lost: func(i redlock.LockInfo) {
			c.over(i)
			c.lost.WithLabelValues(c.labels(i.Name, redlock.Outcome(i.Err))...).Inc()
		},
	}
}

// Watch sets the Locker of which Collect reads what is held, the counts of [redlock.Stats], and the state of the
// masters. nil ends it; call it so before l is dropped.
func (c *Collector) Watch(l *redlock.Locker) { c.locker.Store(l) }

// labels are some values, and the name of the lock where it is a label.
func (c *Collector) labels(name string, values ...string) []string {
	if c.names != nil {
		values = append(values, strings.ToValidUTF8(c.names(name), "\ufffd"))
	}
	return values
}

func (c *Collector) over(i redlock.LockInfo) {
	labels := c.labels(i.Name)
	c.holds.WithLabelValues(labels...).Observe(i.Held.Seconds())
	if c.names != nil {
		c.known.Store(labels[0], nil)
	}
}

func (c *Collector) vote(v redlock.VoteInfo) {
	c.votes.WithLabelValues(v.Master, v.Kind).Inc()
	if v.Err == nil {
		c.latency.WithLabelValues(v.Master).Observe(v.Elapsed.Seconds())
	}
}

func (c *Collector) vecs() []prometheus.Collector {
	return []prometheus.Collector{c.waits, c.holds, c.latency, c.lost, c.attempts, c.votes}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, v := range c.vecs() {
		v.Describe(to)
	}
	for _, d := range []*prometheus.Desc{c.held, unconfirmed, dropped, panics, voting, owed, quarantine, quorum} {
		to <- d
	}
}

// Collect implements prometheus.Collector. It does not wait for the masters.
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
	total(unconfirmed, stats.Unconfirmed)
	total(dropped, stats.Dropped)
	total(panics, stats.Panics)
	votes := make(map[string]bool)
	for _, m := range l.Masters() {
		votes[m.Addr] = m.State == "voting"
		gauge(voting, one(votes[m.Addr]), m.Addr)
		gauge(owed, float64(m.Owed), m.Addr)
		gauge(quarantine, m.Left.Seconds(), m.Addr)
	}
	gauge(quorum, one(l.Set().Quorum(func(master string) bool { return votes[master] })))
}

// collectHeld collects how many of the names that are held have each label.
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
