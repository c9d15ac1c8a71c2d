package sim

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/race"
	"github.com/redlock-go/redlock/verify/mutants"
)

// mutantSeeds is the maximum number of schedules until a mutant is killed.
const mutantSeeds = 8000

// without builds this package's tests with a mutant, and returns the binary. Without a mutant it returns "".
func without(t *testing.T, name string) (binary string) {
	t.Helper()
	if name == "" {
		return ""
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command in PATH")
	}
	root := must.Get(filepath.Abs("../.."))(t)
	dir := t.TempDir()
	overlay := must.Get(mutants.Overlay(root, name, dir))(t)
	binary = filepath.Join(dir, "sim.test")
	build := exec.Command("go", "test", "-c", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the mutant cannot be built: %v\n%s", err, out)
	}
	return binary
}

// Each kind in the list of mutants exists.
func TestMutantsHaveKinds(t *testing.T) {
	for _, m := range mutants.Of(mutants.Sim) {
		for _, kind := range strings.Split(m.Kinds, ",") {
			if !slices.Contains(kindNames[:], kind) {
				t.Errorf("the mutant %s has the unknown kind %q", m.Name, kind)
			}
		}
	}
}

// Each mutant removes one protection. Some schedule kills the mutant, and the same schedule finds no violation in the
// original code. So the checks can fail, and each protection is needed. Mutants of the masters' scripts change package
// reference.
func TestMutantsAreKilled(t *testing.T) {
	if !long.Enabled() || race.Enabled {
		t.Skip("needs -long, without -race: it builds a binary for each mutant")
	}
	for _, m := range mutants.Of(mutants.Sim) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			killed(t, m)
		})
	}
}

func killed(t *testing.T, m mutants.Mutant) {
	t.Helper()
	binary, began := without(t, m.Name), time.Now()
	var found *badSeed
	c := child{first: *firstSeed + m.First, seeds: max(*seedCount, mutantSeeds), kinds: m.Kinds, until: m.Shows,
		binary: binary}
	sum := c.run(t, func() {}, func(b badSeed) { found = &b })
	if found == nil {
		t.Fatalf("the mutant survived: none of %d schedules found a violation", sum.Runs)
	}
	at := slices.IndexFunc(found.Problems, func(s string) bool { return strings.Contains(s, m.Shows) })
	if at < 0 {
		t.Fatalf("no violation in %d schedules contains %q; the last violations are %q", sum.Runs, m.Shows, found.Problems)
	}
	t.Logf("found after %v, by schedule %d of its kinds: %s", time.Since(began).Round(time.Millisecond), sum.Runs,
		found.Problems[at])
	t.Logf("seed %d kills the mutant: %s", found.Seed, m.Wrong)
	intact := child{first: found.Seed, seeds: 1}
	intact.run(t, func() {}, func(b badSeed) {
		t.Errorf("seed %d also finds a violation in the original code: %s", b.Seed, b.Problems)
	})
}
