package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// The exit codes; see the package documentation.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitMissed      = 3
	exitInterrupted = 130
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

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
	r, err := measureAll(ctx, c, newProgress(stderr))
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, errInterrupted)
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	write := r.writeTable
	if c.json {
		write = r.writeJSON
	}
	if err := write(stdout); err != nil {
		fmt.Fprintln(stderr, "bench: cannot write the result:", err)
		return exitFailed
	}
	if c.check && r.missed() {
		return exitMissed
	}
	return exitOK
}

// A bench is one run of the program.
type bench struct {
	cfg         *config
	masters     *masters
	progress    *progress
	report      *report
	prefix      string // of all keys, another one for each run
	connsBefore []int
	closeErrs   []error
	aborting    sync.Once
}

func (b *bench) libraryPrefix() string { return b.prefix + "-library" }

func (b *bench) closing(err error) { b.closeErrs = append(b.closeErrs, err) }

// abort ends the program where the floor cannot go on, which joins nothing: only the servers are stopped. An interrupt
// from a terminal goes to the servers as well, so what the floor sees first may be their end.
func (b *bench) abort(ctx context.Context, err error) {
	b.aborting.Do(func() {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		code := exitFailed
		if ctx.Err() != nil {
			code, err = exitInterrupted, errInterrupted
		}
		b.progress.clear()
		fmt.Fprintln(os.Stderr, err)
		if err := b.masters.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	})
}

var errInterrupted = errors.New("bench: interrupted")

// measureAll opens the masters, runs the scenarios, and closes whatever was opened, in every case.
func measureAll(ctx context.Context, c *config, p *progress) (r *report, err error) {
	defer p.clear()
	p.say("starting")
	m, err := openMasters(ctx, c)
	if err != nil {
		return nil, err
	}
	b := &bench{cfg: c, masters: m, progress: p, report: newReport(c, m), prefix: "redlock-bench-" + strconv.FormatUint(rand.Uint64(), 36)}
	defer func() {
		err = errors.Join(err, errors.Join(b.closeErrs...), m.close())
	}()
	if m.apart() {
		if b.report.Masters.Version, err = m.versions(ctx); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(b.scenarios(ctx), b.cleanUp(ctx)); err != nil {
		return nil, err
	}
	b.report.judge()
	return b.report, nil
}

func (b *bench) scenarios(ctx context.Context) error {
	if b.cfg.wants(scenarioPair) {
		if err := b.measurePairs(ctx); err != nil {
			return err
		}
	}
	if b.cfg.wants(scenarioFaults) {
		if err := b.measureFaults(ctx); err != nil {
			return err
		}
	}
	n, err := b.masters.leftBehind(ctx, b.libraryPrefix())
	if err == nil {
		b.report.LeftBehind = &n
	}
	return err
}

// cleanUp removes the keys of this run from masters that live on.
func (b *bench) cleanUp(ctx context.Context) error {
	if b.masters.kind != kindGiven {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
	defer cancel()
	return b.masters.sweep(ctx, b.prefix)
}
