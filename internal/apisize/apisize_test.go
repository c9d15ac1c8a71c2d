package apisize

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// budgets maps packages to the maximum number of their exported identifiers: types, functions, methods of exported
// types, fields of exported structs, methods of exported interfaces, constants and variables. If a package shrinks,
// reduce its number.
var budgets = map[string]int{
	"redlock":             110,
	"redlock/redlockfile": 2,
	"redlock/redlockinfo": 48,
	"redlock/redlocktest": 30,
	"pool":                45,
	"clock":               10,
}

func TestExportedIdentifiersWithinBudget(t *testing.T) {
	for path, budget := range budgets {
		if got := exported(t, filepath.Join("..", "..", path)); len(got) > budget {
			t.Errorf("%s exports %d identifiers, the budget is %d: %s", path, len(got), budget, strings.Join(got, " "))
		}
	}
}

// exported returns the exported identifiers of the package in dir.
func exported(t *testing.T, dir string) (names []string) {
	t.Helper()
	fset := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		t.Fatalf("%s contains no Go files", dir)
	}
	p, err := doc.NewFromFiles(fset, files, dir)
	if err != nil {
		t.Fatal(err)
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, name := range v.Names {
				if ast.IsExported(name) {
					names = append(names, name)
				}
			}
		}
	}
	funcs := func(of string, list []*doc.Func) {
		for _, f := range list {
			names = append(names, of+f.Name)
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs("", p.Funcs)
	for _, typ := range p.Types {
		names = append(names, typ.Name)
		values(typ.Consts)
		values(typ.Vars)
		funcs("", typ.Funcs)
		funcs(typ.Name+".", typ.Methods)
		for _, spec := range typ.Decl.Specs {
			names = append(names, members(spec.(*ast.TypeSpec))...)
		}
	}
	return names
}

// members returns the exported fields of a struct, or the exported methods of an interface, without embedded ones.
func members(spec *ast.TypeSpec) (names []string) {
	var list *ast.FieldList
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		list = typ.Fields
	case *ast.InterfaceType:
		list = typ.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		for _, name := range f.Names {
			if name.IsExported() {
				names = append(names, spec.Name.Name+"."+name.Name)
			}
		}
	}
	return names
}
