package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Mutant is a row of List.
type Mutant struct {
	Name  string // the name in the comments of the mutant
	Wrong string // the fault that occurs without the protection, often with the id of a hazard
	Suite string // directory of the package whose tests kill the mutant

	Tests string // regular expression for the tests of Suite that fail, without the prefix Test

	// If Suite is Sim: the kinds of schedules that kill the mutant soonest (separated by commas), a part of the
	// description of the violation, and the first seed to try if few schedules kill the mutant.
	Kinds, Shows string
	First        uint64
}

// Sim is the suite of schedules: the directory of the simulator.
const Sim = "verify/sim"

// An edit replaces the bytes from begin to end of a file.
type edit struct {
	file        string // absolute path
	begin, end  int    // byte offsets
	replacement string
}

// sources lists the directories that contain protections.
var sources = []string{"clock", "cmd/redlock", "internal", "pool", "redlock"}

var comment = regexp.MustCompile(`^\s*//mutant:(\S+) (.*)$`)

// Scan returns the edits of each mutant, by name, from the comments in the sources below root.
func Scan(root string) (map[string][]edit, error) {
	all := map[string][]edit{}
	for _, dir := range sources {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			return scanFile(path, all)
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func scanFile(path string, all map[string][]edit) error {
	text, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte("//mutant:")) {
		return err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var waiting [][]string // name and definition of each comment directly above the current line
	for i, line := range strings.Split(string(text), "\n") {
		if m := comment.FindStringSubmatch(line); m != nil {
			waiting = append(waiting, m[1:])
			continue
		}
		for _, m := range waiting {
			e, err := change(files, file, text, i+1, m[1])
			if err != nil {
				return fmt.Errorf("%s:%d: mutant %s: %w", path, i+1, m[0], err)
			}
			e.file = path
			all[m[0]] = append(all[m[0]], e)
		}
		waiting = nil
	}
	return nil
}

// change returns the edit of the statement, case or declaration that begins on a line. how is the definition in the
// comment.
func change(files *token.FileSet, file *ast.File, text []byte, line int, how string) (e edit, err error) {
	offset := func(p token.Pos) int { return files.Position(p).Offset }
	n := beginning(files, file, line)
	if n == nil {
		return e, fmt.Errorf("no statement, case or declaration begins on this line")
	}
	begin, end := n.Pos(), n.End()
	switch code, whole := strings.CutPrefix(how, "-> "); {
	case whole:
		e.replacement = code
	case how == "drop":
	default:
		number, expression, ok := strings.Cut(how, "= ")
		list := values(n)
		if !ok || len(list) == 0 {
			return e, fmt.Errorf("%q does not apply to %T: it has no condition or values", how, n)
		}
		if number != "" {
			operands := flatten(list)
			k, err := strconv.Atoi(number)
			if err != nil || k < 1 || k > len(operands) {
				return e, fmt.Errorf("%q: the operand must be a number from 1 to %d", how, len(operands))
			}
			list = operands[k-1 : k]
		}
		begin, end = list[0].Pos(), list[len(list)-1].End()
		e.replacement = expression
		if operator := map[string]string{"false": "&&", "true": "||"}[expression]; operator != "" && len(list) == 1 {
			// Keep the original operand, so that its variables remain used, as the compiler demands.
			e.replacement = fmt.Sprintf("(%s %s (%s))", expression, operator, text[offset(begin):offset(end)])
		}
	}
	e.begin, e.end = offset(begin), offset(end)
	return e, nil
}

// beginning returns the outermost statement, case or declaration that begins on a line. For a function on one line
// it returns the statement in the function.
func beginning(files *token.FileSet, file *ast.File, line int) (found ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil || found != nil {
			return false
		}
		if files.Position(n.Pos()).Line != line {
			return true
		}
		switch n := n.(type) {
		case *ast.FuncDecl, *ast.GenDecl, *ast.BlockStmt:
			return true
		case ast.Stmt, *ast.ValueSpec:
			found = n
		}
		return found == nil
	})
	return found
}

// values returns the condition of a statement, the expressions of a case, or the values of a statement or declaration.
func values(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.IfStmt:
		return []ast.Expr{n.Cond}
	case *ast.ForStmt:
		return []ast.Expr{n.Cond}
	case *ast.CaseClause:
		return n.List
	case *ast.AssignStmt:
		return n.Rhs
	case *ast.ReturnStmt:
		return n.Results
	case *ast.ValueSpec:
		return n.Values
	}
	return nil
}

// flatten returns the operands of logical expressions, from left to right.
func flatten(list []ast.Expr) (operands []ast.Expr) {
	for _, e := range list {
		if p, ok := e.(*ast.ParenExpr); ok {
			if b, ok := p.X.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
				e = b
			}
		}
		if b, ok := e.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
			operands = append(operands, flatten([]ast.Expr{b.X, b.Y})...)
			continue
		}
		operands = append(operands, e)
	}
	return operands
}

// apply returns the changed files of a mutant, by path.
func apply(edits []edit) (map[string][]byte, error) {
	slices.SortFunc(edits, func(a, b edit) int { return b.begin - a.begin }) // so that offsets remain valid
	texts := map[string][]byte{}
	for _, e := range edits {
		if texts[e.file] == nil {
			text, err := os.ReadFile(e.file)
			if err != nil {
				return nil, err
			}
			texts[e.file] = text
		}
		texts[e.file] = slices.Concat(texts[e.file][:e.begin], []byte(e.replacement), texts[e.file][e.end:])
	}
	for path, text := range texts {
		if _, err := format.Source(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return texts, nil
}

// Overlay writes the changed files of a mutant to dir, and returns the path of the file for the -overlay flag of the go
// command.
func Overlay(root, name, dir string) (string, error) {
	all, err := Scan(root)
	if err != nil {
		return "", err
	}
	if len(all[name]) == 0 {
		return "", fmt.Errorf("unknown mutant %q: no comment //mutant:%s in the sources", name, name)
	}
	texts, err := apply(all[name])
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for i, path := range slices.Sorted(maps.Keys(texts)) {
		replace[path] = filepath.Join(dir, strconv.Itoa(i)+".go")
		if err := os.WriteFile(replace[path], texts[path], 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, overlay, 0o600)
}

// Of returns the rows of List for a suite.
func Of(suite string) (list []Mutant) {
	for _, m := range List {
		if m.Suite == suite {
			list = append(list, m)
		}
	}
	return list
}
