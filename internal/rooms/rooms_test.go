package rooms

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/redlock-go/redlock/"
	redigo = "github.com/gomodule/redigo/redis"
)

// A room is a package, and which others of this module it may import. Redigo is named like them.
type room struct {
	path string
	may  []string
}

// rooms go from the top to the bottom: each may import some of those that stand below it, and no other.
var rooms = []room{
	{"redlock/stories", nil}, // a module of its own, of tests alone
	{"redlock/internal/sim", []string{
		"redlock", "pool", "internal/scripts/reference", "internal/scripts", "internal/jitter", "clock",
	}},
	{"redlock", []string{
		"redlock/internal/reconfig", "redlock/internal/several", "redlock/internal/queue", "redlock/internal/voters",
		"redlock/internal/grant", "redlock/internal/spread", "redlock/internal/dispatch",
		"redlock/internal/round", "redlock/internal/admission", "redlock/internal/ballot", "redlock/internal/quorum",
		"pool", "internal/scripts", "internal/jitter", "clock",
	}},
	{"redlock/internal/several", nil},
	{"redlock/internal/spread", []string{"internal/scripts"}},
	{"redlock/internal/testbed", []string{
		"redlock/internal/voters", "redlock/internal/round", "redlock/internal/ballot", "redlock/internal/quorum",
		"redlock/internal/admission", "redlock/redlocktest", "pool", "internal/scripts", "clock",
	}},
	{"redlock/redlocktest", []string{"pool", "internal/scripts/reference", "internal/scripts", "clock", redigo}},
	{"redlock/internal/queue", []string{
		"redlock/internal/grant", "redlock/internal/round", "redlock/internal/admission", "redlock/internal/quorum",
		"internal/scripts", "internal/jitter", "clock",
	}},
	{"redlock/internal/grant", []string{
		"redlock/internal/round", "redlock/internal/admission", "redlock/internal/ballot", "redlock/internal/due",
		"redlock/internal/quorum", "pool", "internal/scripts", "clock",
	}},
	{"redlock/internal/voters", []string{
		"redlock/internal/round", "redlock/internal/admission", "redlock/internal/ballot", "redlock/internal/quorum", "pool",
		"internal/scripts", "clock",
	}},
	{"redlock/internal/round", []string{
		"redlock/internal/admission", "redlock/internal/quorum", "pool", "internal/scripts", "clock",
	}},
	{"redlock/internal/reconfig", []string{
		"redlock/internal/admission", "redlock/internal/ballot", "redlock/internal/quorum", "internal/scripts",
	}},
	{"redlock/internal/admission", []string{"redlock/internal/ballot", "redlock/internal/quorum", "internal/scripts"}},
	{"redlock/internal/ballot", []string{"redlock/internal/quorum", "internal/scripts", "clock"}},
	{"redlock/internal/due", []string{"clock"}},
	{"redlock/internal/dispatch", nil},
	{"redlock/internal/quorum", []string{"internal/scripts"}},
	{"pool", []string{
		"pool/internal/sentinel", "pool/internal/feed", "pool/internal/pipe", "pool/internal/wire", "pool/internal/fault", "internal/scripts",
		"clock", redigo,
	}},
	{"pool/internal/sentinel", []string{"pool/internal/wire", "pool/internal/fault", redigo}},
	{"pool/internal/feed", []string{"pool/internal/pipe", "pool/internal/wire", "pool/internal/fault", "internal/scripts", redigo}},
	{"pool/internal/pipe", []string{"pool/internal/wire", "pool/internal/fault", "internal/scripts", redigo}},
	{"pool/internal/wire", []string{"pool/internal/fault", "internal/jitter", redigo}},
	{"pool/internal/fault", []string{redigo}},
	{"internal/scripts/reference", []string{"internal/scripts"}},
	{"internal/scripts", []string{"internal/jitter"}},
	{"internal/jitter", nil},
	{"clock", nil},
	{redigo, nil},
}

// An arrow that points upwards is a knot: then neither package can be read alone.
func TestTheListOfRoomsGoesDownwards(t *testing.T) {
	for at, r := range rooms {
		for _, other := range r.may {
			if !slices.ContainsFunc(rooms[at+1:], func(below room) bool { return below.path == other }) {
				t.Errorf("%s may import %s, which does not stand below it", r.path, other)
			}
		}
	}
}

// Each package below redlock, pool, internal/scripts and clock imports only what its room may.
func TestPackagesImportOneWayOnly(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, top := range []string{"redlock", "pool", "internal/scripts", "clock"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			for _, problem := range check(filepath.ToSlash(dir), path) {
				t.Error(problem)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// check says what a file of the package in dir imports and may not.
func check(dir, path string) (problems []string) {
	at := slices.IndexFunc(rooms, func(r room) bool { return r.path == dir })
	if at < 0 {
		return []string{dir + " is a package without a room: add it to the list, where it belongs"}
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		return []string{err.Error()}
	}
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return append(problems, err.Error())
		}
		own, ours := strings.CutPrefix(name, module)
		if (ours || strings.HasPrefix(name, redigo)) && !slices.Contains(rooms[at].may, own) {
			problems = append(problems, fmt.Sprintf("%s imports %s, which the room of %s may not", path, own, dir))
		}
	}
	return problems
}

// Each package but the examples, which are read as one file, begins with a doc.go of at most 100 lines.
func TestEachPackageBeginsWithItsDocumentation(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); name == "examples" && filepath.Dir(dir) == root || name == "testdata" || name == ".git" {
			return fs.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, "doc.go"))
		if n := bytes.Count(text, []byte("\n")); err != nil || n > 100 || !bytes.HasPrefix(text, []byte("// ")) {
			t.Errorf("%s: doc.go has %d lines, %v", dir, n, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
