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

// Exit codes. The help explains them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitMissed      = 3
	exitInterrupted = 130
)

func main() {
	if os.Getenv(workerEnv) == "1" {
		os.Exit(workerMain())
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
		fmt.Fprintln(stderr, "bench: interrupted")
		return exitInterrupted
	case err == nil:
		err = deliverAll(r, c, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
	}
	switch {
	case err == nil && c.check && missed(r.Targets, c.short, r.Busy != ""):
		return exitMissed
	case err != nil:
		return exitFailed
	}
	return exitOK
}

// obtain returns the report of a new measurement, or with -from the saved report.
func obtain(ctx context.Context, c *config, p *progress) (*report, error) {
	if c.compare != "" { // report an unreadable file before measuring
		if _, err := readReport(c.compare); err != nil {
			return nil, err
		}
	}
	if c.from != "" {
		return readReport(c.from)
	}
	return measureAll(ctx, c, p)
}

// deliverAll writes the requested files. To stdout it writes the JSON document, or else the requested tables and
// targets and the summary; then the comparison, if it is requested.
func deliverAll(r *report, c *config, stdout io.Writer) error {
	page := func(w io.Writer) error { return writePage(w, r, c.check) }
	err := errors.Join(writeFile(c.out, r.writeJSON), writeFile(c.html, page))
	if c.json {
		err = errors.Join(err, r.writeJSON(stdout))
	} else {
		if c.verbose {
			err = errors.Join(err, writeTables(stdout, r))
		}
		if c.check {
			err = errors.Join(err, writeTargets(stdout, r.Targets))
		}
		err = errors.Join(err, writeSummary(stdout, r))
	}
	if c.compare == "" {
		return err
	}
	old, failed := readReport(c.compare)
	if failed == nil {
		failed = writeComparison(stdout, old, r)
	}
	return errors.Join(err, failed)
}

// writeFile writes a file with the given function. It does nothing if path is empty.
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
