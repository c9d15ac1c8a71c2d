package main

import "fmt"

// A target is what the project has set itself, and what was measured.
type target struct {
	Name   string `json:"name"`
	Target string `json:"target"`
	// Measured is nil where the run does not tell.
	Measured *float64 `json:"measured"`
	// Met is nil where the run does not tell.
	Met *bool `json:"met"`
	// Floor is what the floor itself comes to under the same fault, nil where there is no such figure: a target that
	// the floor misses as well says more about the machine than about the library.
	Floor *float64 `json:"floor"`
}

// The targets.
const (
	mostLatencyRatio = 1.25
	leastRateRatio   = 0.8
	mostConnections  = 1 // a master
	mostAllocs       = 30
	mostFaultRatio   = 1.1
)

func atMost(name string, bound float64, measured *float64) target {
	return judged(name, "<=", bound, measured, func(v float64) bool { return v <= bound })
}

func atLeast(name string, bound float64, measured *float64) target {
	return judged(name, ">=", bound, measured, func(v float64) bool { return v >= bound })
}

func judged(name, relation string, bound float64, measured *float64, met func(float64) bool) target {
	t := target{Name: name, Target: fmt.Sprintf("%s %g", relation, bound), Measured: measured}
	if measured != nil {
		ok := met(*measured)
		t.Met = &ok
	}
	return t
}

func median(s *spread) *float64 {
	if s == nil {
		return nil
	}
	return &s.Median
}

// judge fills in the report's targets from its figures. What a run has not measured stays open.
func (r *report) judge() {
	r.Targets = nil
	add := func(t target) { r.Targets = append(r.Targets, t) }
	at := func(n int) (pairResult, bool) {
		for _, p := range r.Pair {
			if p.Goroutines == n {
				return p, true
			}
		}
		return pairResult{}, false
	}
	one, _ := at(1)
	add(atMost("median latency at 1 goroutine, as a ratio to the floor", mostLatencyRatio, median(one.Latency)))
	for _, n := range []int{64, 512} {
		p, _ := at(n)
		add(atLeast(fmt.Sprintf("throughput at %d goroutines, as a ratio to the floor", n), leastRateRatio, median(p.Throughput)))
	}
	add(atMost("allocations a pair at 1 goroutine", mostAllocs, median(one.Contenders[nameLibrary].Allocs)))
	add(atMost("connections a master", mostConnections, r.mostConnections()))
	add(atMost("lock keys left behind", 0, r.left()))
	for _, f := range allFaults() {
		if f.count > 0 && !f.floor {
			t := atMost("median latency with "+f.String()+", as a ratio to all healthy", mostFaultRatio, r.faultRatio(f.String()))
			t.Floor = r.faultRatio(f.onFloor().String())
			add(t)
		}
	}
}

func (r *report) faultRatio(name string) *float64 {
	for _, f := range r.Faults {
		if f.Fault == name {
			return median(f.Ratio)
		}
	}
	return nil
}

func (r *report) mostConnections() *float64 {
	if len(r.Connections) == 0 {
		return nil
	}
	most := 0.0
	for _, n := range r.Connections {
		most = max(most, float64(n))
	}
	return &most
}

func (r *report) left() *float64 {
	if r.LeftBehind == nil {
		return nil
	}
	n := float64(*r.LeftBehind)
	return &n
}

// missed reports whether a target was measured and not met.
func (r *report) missed() bool {
	for _, t := range r.Targets {
		if t.Met != nil && !*t.Met {
			return true
		}
	}
	return false
}
