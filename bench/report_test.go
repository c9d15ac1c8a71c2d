package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func madeSample(goroutines int, latency time.Duration, pairs int) *sample {
	s := &sample{goroutines: goroutines, pairs: pairs, elapsed: time.Second, allocs: 20, clientCPU: -1, serverCPU: 3}
	for range pairs {
		s.latencies = append(s.latencies, latency)
	}
	return s
}

func madeReport() *report {
	r := &report{Rounds: 1, Machine: machineInfo{CPUs: 2}, Connections: []int{1, 1, 2}}
	for _, n := range []int{1, 64} {
		r.Pair = append(r.Pair, newPairResult(n, map[string][]*sample{
			nameLibrary: {madeSample(n, 200*time.Microsecond, 90)},
			nameDirect:  {madeSample(n, 100*time.Microsecond, 80)},
			nameQueued:  {madeSample(n, 150*time.Microsecond, 100)},
		}))
	}
	for _, f := range allFaults() {
		r.Faults = append(r.Faults, newFaultResult(f.String(), []*sample{madeSample(1, 105, 3)}, []*sample{madeSample(1, 100, 3)}))
	}
	left := 0
	r.LeftBehind = &left
	r.judge()
	return r
}

// With one goroutine the floor is the form with the smaller median latency, with several the one with the higher rate.
func TestTheFloorIsTheFasterForm(t *testing.T) {
	r := madeReport()
	if one := r.Pair[0]; one.Floor != nameDirect || one.Latency.Median != 2 {
		t.Errorf("1 goroutine: floor %q, ratio %v", one.Floor, one.Latency)
	}
	if many := r.Pair[1]; many.Floor != nameQueued || many.Throughput.Median != 0.9 {
		t.Errorf("64 goroutines: floor %q, ratio %v", many.Floor, many.Throughput)
	}
}

func TestTargetsAreMetMissedOrOpen(t *testing.T) {
	r := madeReport()
	want := map[string]string{
		"median latency at 1 goroutine":  "missed",
		"throughput at 64 goroutines":    "met",
		"throughput at 512 goroutines":   "open",
		"allocations a pair":             "met",
		"connections a master":           "missed",
		"lock keys left behind":          "met",
		"median latency with one hung":   "met",
		"median latency with two slow":   "met",
		"median latency with two dead, ": "met",
	}
	for name, verdict := range want {
		found := false
		for _, g := range r.Targets {
			if !strings.HasPrefix(g.Name, name) {
				continue
			}
			found = true
			got := "open"
			if g.Met != nil {
				if got = "met"; !*g.Met {
					got = "missed"
				}
			}
			if got != verdict {
				t.Errorf("%s: %s, want %s", g.Name, got, verdict)
			}
		}
		if !found {
			t.Errorf("no target %q", name)
		}
	}
	if !r.missed() {
		t.Error("a missed target is not told")
	}
	if empty := new(report); len(empty.Targets) != 0 || empty.missed() {
		t.Error("an empty report has missed something")
	}
}

// What reads the JSON relies on these names, and on null for what was not measured.
func TestJSONShape(t *testing.T) {
	var out bytes.Buffer
	if err := madeReport().writeJSON(&out); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	at := func(path ...any) any {
		var v any = doc
		for _, p := range path {
			switch p := p.(type) {
			case string:
				m, ok := v.(map[string]any)
				if !ok {
					t.Fatalf("%v: %T", path, v)
				}
				if v, ok = m[p]; !ok {
					t.Fatalf("%v is missing", path)
				}
			case int:
				v = v.([]any)[p]
			}
		}
		return v
	}
	if got := at("pair", 0, "goroutines"); got != 1.0 {
		t.Errorf("goroutines: %v", got)
	}
	for _, f := range []string{"mean_us", "p50_us", "p90_us", "p99_us", "pairs_per_second", "allocs_per_pair", "server_cpu_us_per_pair"} {
		for _, part := range []string{"median", "min", "max"} {
			at("pair", 0, "contenders", nameLibrary, f, part)
		}
	}
	if got := at("pair", 0, "contenders", nameLibrary, "client_cpu_us_per_pair"); got != nil {
		t.Errorf("what was not measured is %v", got)
	}
	at("pair", 1, "latency_ratio", "median")
	at("pair", 1, "throughput_ratio", "median")
	at("faults", 0, "p50_ratio", "median")
	at("faults", 0, "failed_pairs")
	at("masters", "kind")
	at("machine", "cpus")
	at("lock_keys_left_behind")
	at("library_connections", 2)
	at("targets", 0, "met")
}

func TestTableSaysEachTarget(t *testing.T) {
	var out bytes.Buffer
	if err := madeReport().writeTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NOT MET", "not measured", "<= 1.25", "library / floor, direct", "two slow", "all healthy, one behind a proxy"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not have %q:\n%s", want, out.String())
		}
	}
}
