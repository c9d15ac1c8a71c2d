// Command against measures this tree beside another commit: the benchmarks of both run in turn, one round each, and
// each figure is printed with the median over the rounds of new divided by old.
//
//	go run ./bench/against -commit HEAD~1 -rounds 5 -- -scenario pairs -goroutines 1,64
//
// What stands after -- goes to both benchmarks. Run it from the root of the repository, on a quiet machine. The other
// commit is checked out in a temporary directory, which is removed.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// A figure is one line of a benchmark's report.
type figure struct {
	Scenario, Case, Who, Metric, Unit string
	Median                            float64
}

func (f *figure) key() string { return f.Scenario + ": " + f.Case + "\t" + f.Who + "\t" + f.Metric }

func main() {
	commit := flag.String("commit", "HEAD", "the commit to compare with")
	rounds := flag.Int("rounds", 5, "how often each of the two is run")
	flag.Parse()
	if err := run(*commit, *rounds, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "against:", err)
		os.Exit(1)
	}
}

func run(commit string, rounds int, args []string) error {
	dir, err := os.MkdirTemp("", "against")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	old := filepath.Join(dir, "old")
	if err := command("git", "worktree", "add", "--detach", old, commit); err != nil {
		return err
	}
	defer func() { _ = command("git", "worktree", "remove", "--force", old) }()
	programs := []string{filepath.Join(dir, "bench.old"), filepath.Join(dir, "bench.new")}
	for i, root := range []string{old, "."} {
		if err := command("go", "build", "-C", root, "-o", programs[i], "./bench"); err != nil {
			return err
		}
	}
	var order []figure
	values := map[string]*[2][]float64{}
	for round := range rounds {
		for side, program := range programs {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, rounds, filepath.Base(program))
			list, err := measure(program, filepath.Join(dir, "report.json"), args)
			if err != nil {
				return err
			}
			for _, f := range list {
				if values[f.key()] == nil {
					values[f.key()] = &[2][]float64{}
					order = append(order, f)
				}
				values[f.key()][side] = append(values[f.key()][side], f.Median)
			}
		}
	}
	return show(order, values)
}

// measure runs one benchmark for one round.
func measure(program, out string, args []string) ([]figure, error) {
	if err := command(program, append([]string{"-rounds", "1", "-out", out}, args...)...); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	var report struct{ Figures []figure }
	return report.Figures, json.Unmarshal(text, &report)
}

func show(order []figure, values map[string]*[2][]float64) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "case\tcontender\tmetric\told\tnew\tnew/old")
	for _, f := range order {
		v := values[f.key()]
		ratio := "-"
		if len(v[0]) == len(v[1]) {
			ratios := make([]float64, len(v[0]))
			for i := range ratios {
				ratios[i] = v[1][i] / v[0][i]
			}
			ratio = fmt.Sprintf("%.2f", median(ratios))
		}
		fmt.Fprintf(t, "%s %s\t%.4g\t%.4g\t%s\n", f.key(), f.Unit, median(v[0]), median(v[1]), ratio)
	}
	return t.Flush()
}

// median is 0 where there is no value.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// command runs a program; what it prints is shown where it fails.
func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %q: %w\n%s", name, args, err, out)
	}
	return nil
}
