package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tests are the packages of a small module: one for each thing that can happen to a package.
var tests = map[string]string{
	"passes": `func TestPasses(t *testing.T) { t.Log("silent"); print("silent, too\n") }
		func TestNeedsOne(t *testing.T) { t.Log("first"); t.Skip("needs a thing: get it") }
		func TestNeedsTwo(t *testing.T) { t.Run("part", func(t *testing.T) { t.Skip("needs a thing: get it") }) }
		func TestNeedsMore(t *testing.T) { t.Skip("needs more:\nof it") }
		func TestSaysNothing(t *testing.T) { t.SkipNow() }`,
	"fails": `func TestFails(t *testing.T) {
			t.Run("bad", func(t *testing.T) { t.Error("loud") })
			t.Run("good", func(t *testing.T) { t.Log("silent") })
		}
		func TestPasses(t *testing.T) { t.Log("silent") }
		func TestNeedsThree(t *testing.T) { t.Skip("needs a thing: get it") }`,
	"panics": `func TestPanics(t *testing.T) { t.Log("before"); panic("boom") }`,
	"broken": `func TestBroken(t *testing.T) { undefined() }`,
}

// module writes the packages and returns the directory.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/m\n")
	write("empty/empty.go", "package empty\n")
	for name, text := range tests {
		write(name+"/x_test.go", "package "+name+"\nimport \"testing\"\n"+text)
	}
	return dir
}

var seconds = regexp.MustCompile(`\t(\d+\.\d+s|\(cached\))|\(\d+\.\d+s\)`)

// The program itself is run, over the go command itself. Times are taken out of what it says.
func TestItSaysWhatGoTestSaysAndWhatWasLeftOut(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command in PATH")
	}
	program := filepath.Join(t.TempDir(), "tests")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir := module(t)
	const (
		ok     = "ok  \texample.com/m/passes\n"
		needs  = "needs a thing: get it\n"
		others = "left out: TestNeedsMore: needs more: of it\nleft out: TestSaysNothing: it does not say why\n"
		failed = "    x_test.go:4: loud\n--- FAIL: TestFails/bad \n--- FAIL: TestFails \nFAIL\nFAIL\texample.com/m/fails\n"
	)
	for _, one := range []struct {
		name   string
		args   string
		status int
		out    string // all of it; where it is "", parts are in it
		parts  []string
	}{
		{"all is well", "./passes ./empty", 0, "?   \texample.com/m/empty\t[no test files]\n" + ok +
			"left out: 2 tests: " + needs + others + "ok  \ttotal\n", nil},
		{"the same from the cache", "./passes", 0, ok + "left out: 2 tests: " + needs + others + "ok  \ttotal\n", nil},
		{"nothing is left out", "-run Passes ./passes", 0, ok + "ok  \ttotal\n", nil},
		{"a test fails", "./fails", 1, failed + "left out: TestNeedsThree: " + needs + "FAIL\ttotal\n", nil},
		{"all of these", "./...", 1, "", []string{
			ok, failed, "left out: 3 tests: " + needs, // of two packages
			"x_test.go:3: before", "panic: boom", "FAIL\texample.com/m/panics\n",
			"undefined: undefined", "FAIL\texample.com/m/broken [build failed]\n", "FAIL\ttotal\n",
		}},
		{"a wrong flag", "-count=x ./passes", 2, "", []string{"FAIL\ttotal\n"}},
	} {
		cmd := exec.Command(program, strings.Fields(one.args)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		var out, problems bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &problems
		err := cmd.Run()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != one.status {
			t.Errorf("%s: %v, and not status %d: %s", one.name, err, one.status, problems.String())
		}
		got := seconds.ReplaceAllString(out.String(), "")
		if one.out != "" && got != one.out {
			t.Errorf("%s: %q, and not %q", one.name, got, one.out)
		}
		for _, part := range one.parts {
			if !strings.Contains(got, part) {
				t.Errorf("%s: no %q in\n%s", one.name, part, got)
			}
		}
		if strings.Contains(got, "silent") {
			t.Errorf("%s: it prints what a test says that passes:\n%s", one.name, got)
		}
	}
}

// Each skip in this repository says what the test needs, in a text that is the same for the same thing.
func TestEachSkipSaysWhatItNeeds(t *testing.T) {
	skips := 0
	files := token.NewFileSet()
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || len(call.Args) == 0 {
				return true
			}
			if f, is := call.Fun.(*ast.SelectorExpr); !is || f.Sel.Name != "Skip" && f.Sel.Name != "Skipf" {
				return true
			}
			skips++
			arg := call.Args[0]
			for sum, is := arg.(*ast.BinaryExpr); is; sum, is = arg.(*ast.BinaryExpr) {
				arg = sum.X
			}
			if text, is := arg.(*ast.BasicLit); !is || !strings.HasPrefix(text.Value, `"needs `) {
				t.Errorf("%s: a skip that does not begin with \"needs \"", files.Position(call.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil || skips < 10 {
		t.Errorf("%d skips were found: %v", skips, err)
	}
}
