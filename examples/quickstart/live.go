package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

// onTerminal reports whether stdout is a terminal that can move its cursor.
func onTerminal() bool {
	info, err := os.Stdout.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && runtime.GOOS != "windows"
}

// A live view shows the masters below the lines of the demonstration, on a terminal.
type live struct {
	out io.Writer

	mu    sync.Mutex
	shown time.Time
	lines int // of the block that is shown
}

const (
	barWidth   = 24
	up         = "\x1b[%dA\x1b[J" // moves the cursor up, and erases what is below
	noWrap     = "\x1b[?7l"
	wrap       = "\x1b[?7h"
	dim        = "\x1b[2m"
	red        = "\x1b[31m"
	plainAgain = "\x1b[0m"
)

// colours has the colour of each program.
var colours = map[string]string{"A": "\x1b[36m", "B": "\x1b[33m"}

// say writes a line above the block.
func (l *live) say(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprint(l.out, l.erased(), line, "\n")
	l.shown = time.Time{}
}

// erased returns the text that erases the block.
func (l *live) erased() string {
	if l.lines == 0 {
		return ""
	}
	defer func() { l.lines = 0 }()
	return fmt.Sprintf(up, l.lines)
}

// show draws the block, at most ten times a second.
func (l *live) show(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.shown) < 100*time.Millisecond {
		return
	}
	l.shown = time.Now()
	var b strings.Builder
	for i, m := range f.masters {
		state := m.state
		switch state {
		case killed, hangs:
			state = red + state + plainAgain
		case quarantine:
			state = dim + state + plainAgain
		}
		pad := strings.Repeat(" ", max(0, 12-len(m.state)))
		fmt.Fprintf(&b, "         master %d  %s%s%s\n", i+1, state, pad, bar(m.who, m.left))
	}
	fmt.Fprintf(&b, "         the lock  %-12s%s\n", holder(f.who), bar(f.who, f.left))
	fmt.Fprint(l.out, l.erased(), noWrap, "\n", b.String(), wrap) // one write, so that nothing flickers
	l.lines = len(f.masters) + 2
}

func holder(who string) string {
	if who == "" {
		return "nobody"
	}
	return who + " holds"
}

// bar draws what is left of the TTL, in the colour of the program.
func bar(who string, left time.Duration) string {
	if who == "" {
		return ""
	}
	n := min(barWidth, int(left*barWidth/ttl))
	return fmt.Sprintf("%s%s%s%s%s %s %.1f s", colours[who], strings.Repeat("█", n), dim, strings.Repeat("·", barWidth-n),
		plainAgain, who, left.Seconds())
}
