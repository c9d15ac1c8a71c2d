package main

// A panel is a graph, or a timeline of states. The description of the panel consists of the help texts of the
// metrics, and of note.
type panel struct {
	title   string
	kind    string // the type of the panel; "" means timeseries
	unit    string // a unit of Grafana
	note    string
	metrics []string
	queries []query
	stack   bool
	states  []state // of a timeline
}

// waits has the time of the calls that wait for a plain lock or a slot.
const waits = `sum by (le) (rate(redlock_wait_seconds_bucket{SEL, op=~"lock|acquire"}[$__rate_interval]))`

// A query is one expression of PromQL. SEL in the expression is replaced with the constant selector.
type query struct{ expr, legend string }

// A state is the text and the color of one value.
type state struct {
	value       int
	text, color string
}

// A row is a heading and its panels.
type row struct {
	title  string
	panels []panel
}

var rows = []row{
	{"Can locks be acquired?", []panel{
		{
			title: "Quorum", kind: "state-timeline", metrics: []string{"redlock_quorum"},
			queries: []query{{`min by (instance) (redlock_quorum{SEL})`, "{{instance}}"}},
			states:  []state{{0, "no quorum", "red"}, {1, "quorum", "green"}},
		},
		{
			title: "Masters that may still fail", unit: "short",
			metrics: []string{"redlock_spare_masters", "redlock_file_unusable"},
			note:    "At 0 the next failure is an outage, at -1 no lock can be acquired.",
			queries: []query{
				{`min by (instance) (redlock_spare_masters{SEL})`, "{{instance}}"},
				{`max by (instance) (redlock_file_unusable{SEL}) > 0`, "{{instance}} cannot use its file"},
			},
		},
		{
			title: "Masters that vote", kind: "state-timeline", metrics: []string{"redlock_master_voting"},
			note:    "A master is red if it has no vote with at least one client.",
			queries: []query{{`min by (master) (redlock_master_voting{SEL})`, "{{master}}"}},
			states:  []state{{0, "no vote", "red"}, {1, "votes", "green"}},
		},
		{
			title: "Masters that do not vote, by state", unit: "short",
			metrics: []string{"redlock_master_state", "redlock_master_quarantine_left_seconds", "redlock_master_epoch"},
			note:    "1 for the state of each master that grants no locks; the remaining seconds of a quarantine; the epoch.",
			queries: []query{
				{`max by (master, state) (redlock_master_state{SEL, state!="voting"}) > 0`, "{{master}} {{state}}"},
				{`max by (master) (redlock_master_quarantine_left_seconds{SEL}) > 0`, "{{master}} quarantine left"},
				{`max by (master) (redlock_master_epoch{SEL}) > 0`, "{{master}} epoch"},
			},
		},
		{
			title: "Pending releases", unit: "short",
			metrics: []string{"redlock_master_pending_releases", "redlock_unconfirmed_releases_total"},
			queries: []query{
				{`max by (master) (redlock_master_pending_releases{SEL})`, "pending at {{master}}"},
				{`sum(increase(redlock_unconfirmed_releases_total{SEL}[$__rate_interval]))`, "unconfirmed"},
			},
		},
	}},
	{"Calls", []panel{
		{
			title: "Calls by outcome", unit: "ops", stack: true, metrics: []string{"redlock_wait_seconds"},
			queries: []query{
				{`sum by (op, outcome) (rate(redlock_wait_seconds_count{SEL}[$__rate_interval]))`, "{{op}}: {{outcome}}"},
			},
		},
		{
			title: "Wait time of Lock", unit: "s", metrics: []string{"redlock_wait_seconds"},
			queries: []query{
				{`histogram_quantile(0.5, ` + waits + `)`, "p50"},
				{`histogram_quantile(0.99, ` + waits + `)`, "p99"},
			},
		},
		{
			title: "Waiting calls", unit: "short", metrics: []string{"redlock_waiting"},
			note: "By reason: another client holds the name, or no quorum of the masters can grant the lock.",
			queries: []query{
				{`sum by (instance, reason) (redlock_waiting{SEL})`, "{{instance}}: {{reason}}"},
			},
		},
		{
			title: "Rounds by outcome", unit: "ops", stack: true, metrics: []string{"redlock_attempts_total"},
			queries: []query{
				{`sum by (outcome) (rate(redlock_attempts_total{SEL}[$__rate_interval]))`, "{{outcome}}"},
			},
		},
	}},
	{"Locks", []panel{
		{
			title: "Held locks", unit: "short", metrics: []string{"redlock_held"},
			queries: []query{{`sum by (instance) (redlock_held{SEL})`, "{{instance}}"}},
		},
		{
			title: "Lost locks", unit: "short", metrics: []string{"redlock_lost_total"},
			queries: []query{
				{`sum by (instance, reason) (increase(redlock_lost_total{SEL}[$__rate_interval]))`, "{{instance}}: {{reason}}"},
			},
		},
		{
			title: "Hold time", unit: "s", metrics: []string{"redlock_hold_seconds"},
			queries: []query{
				{`histogram_quantile(0.5, sum by (le) (rate(redlock_hold_seconds_bucket{SEL}[$__rate_interval])))`, "p50"},
				{`histogram_quantile(0.99, sum by (le) (rate(redlock_hold_seconds_bucket{SEL}[$__rate_interval])))`, "p99"},
			},
		},
		{
			title: "Extensions by outcome", unit: "ops", stack: true, metrics: []string{"redlock_extensions_total"},
			queries: []query{
				{`sum by (outcome) (rate(redlock_extensions_total{SEL}[$__rate_interval]))`, "{{outcome}}"},
			},
		},
		{
			title: "Value changes by outcome", unit: "ops", stack: true, metrics: []string{"redlock_value_changes_total"},
			queries: []query{
				{`sum by (outcome) (rate(redlock_value_changes_total{SEL}[$__rate_interval]))`, "{{outcome}}"},
			},
		},
	}},
	{"Masters and clients", []panel{
		{
			title: "Votes by master and kind", unit: "ops", metrics: []string{"redlock_votes_total"},
			queries: []query{
				{`sum by (master, vote) (rate(redlock_votes_total{SEL}[$__rate_interval]))`, "{{master}}: {{vote}}"},
			},
		},
		{
			title: "Response time of masters, p99", unit: "s", metrics: []string{"redlock_vote_seconds"},
			queries: []query{
				{`histogram_quantile(0.99, sum by (master, le) (rate(redlock_vote_seconds_bucket{SEL}[$__rate_interval])))`,
					"{{master}}"},
			},
		},
		{
			title: "Dropped events", unit: "short", metrics: []string{"redlock_events_dropped_total"},
			note: "While events are dropped, the rates and times on this dashboard are too low.",
			queries: []query{
				{`sum by (instance) (increase(redlock_events_dropped_total{SEL}[$__rate_interval]))`, "{{instance}}"},
			},
		},
		{
			title: "Callback panics", unit: "short", metrics: []string{"redlock_callback_panics_total"},
			queries: []query{
				{`sum by (instance) (increase(redlock_callback_panics_total{SEL}[$__rate_interval]))`, "{{instance}}"},
			},
		},
	}},
}
