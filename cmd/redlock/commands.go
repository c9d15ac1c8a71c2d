package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

func status(ctx context.Context, l *redlock.Locker, o *options) int {
	return report(l.Ready(ctx), o.stdout)
}

func admit(ctx context.Context, l *redlock.Locker, o *options) int {
	return done(ctx, l, o, l.AdmitNow(ctx))
}

func guard(ctx context.Context, l *redlock.Locker, o *options) int {
	if o.set == 0 {
		return status(ctx, l, o)
	}
	return done(ctx, l, o, l.RaiseGuardTime(ctx, o.set))
}

func quarantine(ctx context.Context, l *redlock.Locker, o *options) int {
	return done(ctx, l, o, l.Quarantine(ctx, o.master))
}

// done tells the states of the masters after something was done to them, or was not because of err.
func done(ctx context.Context, l *redlock.Locker, o *options, err error) int {
	code := status(ctx, l, o)
	if err != nil {
		fmt.Fprintln(o.stderr, err)
		code = max(code, exitDanger)
	}
	return code
}

func check(ctx context.Context, l *redlock.Locker, o *options) int {
	findings, err := l.Check(ctx)
	if err != nil {
		fmt.Fprintln(o.stderr, err)
		return exitDanger
	}
	code := exitDone
	findings = slices.DeleteFunc(findings, func(f pool.Finding) bool { // of this command, which takes no locks
		return f.About == "guard time" && f.Severity == pool.Notice && !o.ownGuard
	})
	for _, f := range findings {
		fmt.Fprintf(o.stdout, "%s: %v: %s\n    %s\n    endangers: %s\n    to do: %s\n",
			f.Master, f.Severity, f.About, f.What, f.Endangers, f.Do)
		switch {
		case f.About == "quorum":
			code = exitNoQuorum
		case f.Severity > pool.Notice:
			code = max(code, exitDanger)
		}
	}
	if len(findings) == 0 {
		fmt.Fprintln(o.stdout, "nothing found")
	}
	return code
}

// report tells the masters of a fleet, and whether a quorum of them votes.
func report(list []redlock.MasterInfo, stdout io.Writer) int {
	voting := 0
	for _, m := range list {
		line(m, stdout)
		if m.State == "voting" {
			voting++
		}
	}
	fmt.Fprintf(stdout, "%d of %d vote, %d are needed\n", voting, len(list), len(list)/2+1)
	if voting <= len(list)/2 {
		return exitNoQuorum
	}
	return exitDone
}

// line tells one master.
func line(m redlock.MasterInfo, stdout io.Writer) {
	fmt.Fprintf(stdout, "%-28s %s", m.Addr, m.State)
	if m.Left > 0 {
		fmt.Fprintf(stdout, ", %v left", m.Left.Round(time.Second))
	}
	if m.Guard > 0 {
		fmt.Fprintf(stdout, ", guard time %v", m.Guard)
	}
	if m.Epoch > 0 {
		fmt.Fprintf(stdout, ", epoch %d", m.Epoch)
	}
	if m.Err != nil {
		fmt.Fprintf(stdout, ": %v", m.Err)
	}
	fmt.Fprintln(stdout)
}
