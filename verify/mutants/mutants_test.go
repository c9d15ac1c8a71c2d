package mutants

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/race"
)

const root = "../.."

// The list and the comments in the sources contain the same mutants, and each mutant compiles.
func TestEachMutantCompiles(t *testing.T) {
	all := must.Get(Scan(absolute(t)))(t)
	listed := map[string]bool{}
	for _, m := range List {
		listed[m.Name] = true
		if len(all[m.Name]) == 0 {
			t.Errorf("List contains the mutant %q, but no comment in the sources does", m.Name)
		}
	}
	c := newCompiler(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !listed[name] {
			t.Errorf("%s: a comment contains the mutant %q, but List does not", all[name][0].file, name)
		}
		texts, err := apply(all[name])
		if err != nil {
			t.Errorf("the mutant %s cannot be applied: %v", name, err)
			continue
		}
		for path := range texts {
			if err := c.compile(filepath.Dir(path), texts); err != nil {
				t.Errorf("the mutant %s does not compile: %v", name, err)
			}
		}
	}
}

// A compiler type-checks packages, using the compiled packages that they import.
type compiler struct {
	packages map[string]listedPackage // by directory
	exports  map[string]string        // by import path
	imports  types.Importer
}

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

func newCompiler(t *testing.T) *compiler {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./clock/...",
		"./cmd/redlock", "./internal/...", "./pool/...", "./redlock/...")
	cmd.Dir, cmd.Stderr = absolute(t), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("needs the go command and the modules of the library: %v", err)
	}
	c := &compiler{packages: map[string]listedPackage{}, exports: map[string]string{}}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		c.packages[p.Dir], c.exports[p.ImportPath] = p, p.Export
	}
	c.imports = importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(c.exports[path])
	})
	return c
}

// compile type-checks the package in dir. texts contains the changed files of a mutant, by path.
func (c *compiler) compile(dir string, texts map[string][]byte) error {
	p, ok := c.packages[dir]
	if !ok {
		return fmt.Errorf("go list found no package in %s", dir)
	}
	set, files := token.NewFileSet(), []*ast.File(nil)
	for _, name := range p.GoFiles {
		path := filepath.Join(dir, name)
		var source any
		if text := texts[path]; text != nil {
			source = text
		}
		f, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	_, err := (&types.Config{Importer: c.imports}).Check(p.ImportPath, set, files, nil)
	return err
}

// The tests in each row of List fail with the mutant of the row.
func TestMutantsAreKilled(t *testing.T) {
	if !long.Enabled() || race.Enabled {
		t.Skip("needs -long, without -race: it builds a package and runs its tests for each mutant")
	}
	for _, m := range List {
		if m.Suite == Sim {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			_, err := exec.LookPath("redis-server")
			if err != nil && (m.Suite == "internal/transport" || m.Suite == "cmd/redlock") {
				t.Skip("needs redis-server: without it, tests on real servers are skipped")
			}
			t.Parallel()
			killed(t, m)
		})
	}
}

// killed fails t unless the tests of m fail with the mutant.
func killed(t *testing.T, m Mutant) {
	t.Helper()
	overlay := must.Get(Overlay(absolute(t), m.Name, t.TempDir()))(t)
	tests := "^Test(" + m.Tests + ")$"
	args := []string{"test", "-vet=off", "-count=1", "-failfast", "-run", tests, "./" + m.Suite}
	if m.Suite == "redlock" || m.Suite == "internal/transport" { // some of their tests are long
		args = append(args, "-long")
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = absolute(t)
	cmd.Env = append(os.Environ(), "GOFLAGS=-overlay="+overlay) // for tests that build the command, too
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "--- FAIL") {
		t.Errorf("the mutant survived: the tests passed or did not run: %v\n%s", err, out)
	} else {
		t.Logf("%.400s", out)
	}
}

func absolute(t *testing.T) string {
	t.Helper()
	return must.Get(filepath.Abs(root))(t)
}
