// Command against measures this tree beside another commit: the benchmarks of both run in turn, one round each, and
// what differs by more than chance is printed.
//
//	go run ./bench/against -commit HEAD~1 -rounds 5 -- -scenario pairs -goroutines 1,64
//
// What stands after -- goes to both benchmarks. Run it from the root of the repository, on a quiet machine. The other
// commit is checked out in a temporary directory, which is removed.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

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
	tree := filepath.Join(dir, "old")
	if _, err := command("git", "worktree", "add", "--detach", tree, commit); err != nil {
		return err
	}
	defer func() { _, _ = command("git", "worktree", "remove", "--force", tree) }()
	programs := [2]string{filepath.Join(dir, "bench.old"), filepath.Join(dir, "bench.new")}
	for i, root := range []string{tree, "."} {
		if _, err := command("go", "build", "-C", root, "-o", programs[i], "./bench"); err != nil {
			return err
		}
	}
	var files [2][]string
	for round := range rounds {
		for i, program := range programs {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, rounds, filepath.Base(program))
			out := fmt.Sprintf("%s.%d.json", program, round)
			if _, err := command(program, append([]string{"-rounds", "1", "-out", out}, args...)...); err != nil {
				return err
			}
			files[i] = append(files[i], out)
		}
	}
	text, err := command(programs[1], "-from", strings.Join(files[1], ","), "-compare", strings.Join(files[0], ","))
	fmt.Printf("%s", text)
	return err
}

// command runs a program and returns what it prints, which the error has too.
func command(name string, args ...string) ([]byte, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w\n%s", name, args, err, out)
	}
	return out, nil
}
