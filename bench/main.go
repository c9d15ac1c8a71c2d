package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes; see the package documentation.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitMissed      = 3
	exitInterrupted = 130
)

func main() {
	if os.Getenv(workerEnv) == "1" {
		os.Exit(workerMain(os.Stdin, os.Stdout))
	}
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// command runs the program and returns its exit code.
func command(args []string, stdout io.Writer, stderr *os.File) int {
	c, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := obtain(ctx, c, newProgress(stderr))
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, errInterrupted)
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	if c.readme != "" {
		err = r.writeReadme(c.readme, c.from, c.check)
	} else {
		err = deliverAll(r, c, stdout)
	}
	switch {
	case errors.Is(err, errStale):
		fmt.Fprintln(stderr, err)
		return exitMissed
	case err != nil:
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	if c.check && c.readme == "" && r.missed(c.slack()) {
		return exitMissed
	}
	return exitOK
}

// obtain measures, or reads what has been measured.
func obtain(ctx context.Context, c *config, p *progress) (*report, error) {
	if c.compare != "" { // a file that cannot be read is told before the measuring
		if _, err := readReport(c.compare); err != nil {
			return nil, err
		}
	}
	if c.from != "" {
		return readReport(c.from)
	}
	return measureAll(ctx, c, p)
}

// slack is how many times its bound a target may be off. A short run says too little to fail for less than twice.
func (c *config) slack() float64 {
	if c.short {
		return 2
	}
	return 1
}

// deliverAll writes the report in every form that was asked for.
func deliverAll(r *report, c *config, stdout io.Writer) error {
	if err := r.write(stdout, c); err != nil {
		return fmt.Errorf("bench: cannot write the result: %w", err)
	}
	if err := errors.Join(writeFile(c.out, r.writeJSON), writeFile(c.html, r.writePage)); err != nil {
		return err
	}
	if c.compare == "" {
		return nil
	}
	old, err := readReport(c.compare)
	if err != nil {
		return err
	}
	return writeComparison(stdout, old, r)
}

// write writes what was asked for: the document, or the tables, the targets, and last the summary.
func (r *report) write(w io.Writer, c *config) error {
	if c.json {
		return r.writeJSON(w)
	}
	if c.verbose {
		if err := r.writeTables(w); err != nil {
			return err
		}
	}
	if c.check {
		if err := r.writeTargets(w); err != nil {
			return err
		}
	}
	return r.writeSummary(w)
}

// writeFile does nothing where no file is named.
func writeFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return errors.Join(write(f), f.Close())
}
