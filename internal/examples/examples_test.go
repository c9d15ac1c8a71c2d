package examples

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/must"
)

const module = "github.com/redlock-go/redlock/"

// packages lists the packages that users import.
var packages = []string{"clock", "pool", "redlock", "redlock/admin", "redlock/redlockfile", "redlock/redlocktest",
	"redlockgocron", "redlockgoredis", "redlockotel", "redlockprom", "redlockrueidis", "redlockvalkey"}

// Each exported function, method, constructor and option must be used in an example that pkg.go.dev shows next to
// it: in its own example, or in an example of its type (the receiver of a method, the result of a function). Error,
// Unwrap, String and LogValue are called by fmt, errors and slog, so an example of the type is enough for them.
func TestEachExportedCallHasAnExample(t *testing.T) {
	for _, path := range packages {
		p := must.Get(parse(filepath.Join("..", "..", path), module+path))(t)
		for _, sentence := range append(without(p), internals(p)...) {
			t.Error(sentence)
		}
	}
}

// parse parses the package in dir with its tests.
func parse(dir, path string) (*doc.Package, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(dir, e.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return doc.NewFromFiles(fset, files, path)
}

// without returns a message for each call of p that has no example. The message names the example that is missing.
func without(p *doc.Package) (sentences []string) {
	look := func(call, example string, own, ofType []*doc.Example) {
		name := call[strings.LastIndex(call, ".")+1:]
		if uses(own, name) || uses(ofType, name) {
			return
		}
		sentence := fmt.Sprintf("%s.%s has no example that pkg.go.dev shows next to it: write %s", p.Name, call, example)
		if base, _, isMethod := strings.Cut(strings.TrimPrefix(example, "Example"), "_"); isMethod {
			sentence += ", or use it in Example" + base
		}
		sentences = append(sentences, sentence)
	}
	for _, f := range p.Funcs {
		look(f.Name, "Example"+f.Name, f.Examples, nil)
	}
	for _, of := range p.Types {
		for _, f := range of.Funcs {
			look(f.Name, "Example"+f.Name, f.Examples, of.Examples)
		}
		for _, m := range of.Methods {
			if slices.Contains([]string{"Error", "LogValue", "Unwrap", "String"}, m.Name) {
				if len(of.Examples) == 0 {
					sentences = append(sentences, fmt.Sprintf("%s.%s has no example: write Example%s", p.Name, of.Name, of.Name))
				}
				continue
			}
			look(of.Name+"."+m.Name, "Example"+of.Name+"_"+m.Name, m.Examples, of.Examples)
		}
	}
	return sentences
}

// internals returns a message for each exported declaration of p that shows a type of an internal package.
func internals(p *doc.Package) (sentences []string) {
	look := func(name string, node ast.Node) {
		ast.Inspect(node, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				of, ok := s.X.(*ast.Ident)
				if ok && slices.ContainsFunc(p.Imports, func(path string) bool {
					return strings.Contains(path, "/internal/") && strings.HasSuffix(path, "/"+of.Name)
				}) {
					sentences = append(sentences, fmt.Sprintf("%s.%s shows %s.%s", p.Name, name, of.Name, s.Sel.Name))
				}
			}
			return true
		})
	}
	for _, f := range p.Funcs {
		look(f.Name, f.Decl.Type)
	}
	for _, of := range p.Types {
		look(of.Name, of.Decl)
		for _, f := range append(of.Funcs, of.Methods...) {
			look(f.Name, f.Decl.Type)
		}
	}
	return sentences
}

// uses reports whether an example uses a selector with this name.
func uses(examples []*doc.Example, name string) (found bool) {
	for _, e := range examples {
		ast.Inspect(e.Code, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			found = found || ok && s.Sel.Name == name
			return !found
		})
	}
	return found
}
