package pool_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxExported is the number of exported identifiers that package pool may have: types with their fields and methods,
// functions, constants and variables. Identifiers that only this module needs belong in internal/transport.
const maxExported = 45

func TestExportedIdentifiersAreFew(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			names = append(names, exported(t, decl)...)
		}
	}
	if len(names) > maxExported {
		t.Errorf("there are %d exported identifiers, more than %d: %s", len(names), maxExported, strings.Join(names, " "))
	}
}

// exported returns the exported identifiers that decl declares.
func exported(t *testing.T, decl ast.Decl) (names []string) {
	add := func(prefix string, idents ...*ast.Ident) {
		for _, id := range idents {
			if id.IsExported() {
				names = append(names, prefix+id.Name)
			}
		}
	}
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		add("", decl.Name) // count methods of unexported types, too: callers may get a value of the type
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				add("", spec.Names...)
			case *ast.TypeSpec:
				add("", spec.Name)
				if spec.Assign.IsValid() {
					t.Errorf("%s is an alias: its fields and methods are not counted", spec.Name)
				}
				ast.Inspect(spec.Type, func(n ast.Node) bool {
					if field, ok := n.(*ast.Field); ok {
						add(spec.Name.Name+".", field.Names...)
					}
					return true
				})
			}
		}
	}
	return names
}
