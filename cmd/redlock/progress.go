package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

const (
	quietStart = 500 * time.Millisecond // work that ends sooner shows no progress
	eraseLine  = "\r\x1b[K"
	cutLine    = "\x1b[?7l" // what does not fit into the line is not shown
	wrapLines  = "\x1b[?7h"
)

// progress shows what the command waits for, and for how long, until the returned function is called. It does so in a
// line that it erases again, on the standard error if that is a terminal.
func (c *console) progress(what func() string) (end func()) {
	file, ok := c.stderr.(*os.File)
	if c.json || !ok || !fileIsTerminal(file) || os.Getenv("TERM") == "dumb" {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		began := time.Now()
		for wait := quietStart; ; wait = 200 * time.Millisecond {
			select {
			case <-time.After(wait):
				fmt.Fprintf(file, "%s%swaiting for %s: %v%s", eraseLine, cutLine, what(),
					time.Since(began).Round(100*time.Millisecond), wrapLines)
			case <-done:
				if time.Since(began) > quietStart {
					fmt.Fprint(file, eraseLine)
				}
				return
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// pending names the masters that do not vote, with their states.
func (c *client) pending() string {
	var list []string
	for _, m := range c.set.Masters() {
		switch {
		case m.State == redlockinfo.StateVoting:
		case m.Left > 0:
			list = append(list, fmt.Sprintf("%s (%s, %v left)", m.Addr, m.State, m.Left.Round(time.Second)))
		default:
			list = append(list, fmt.Sprintf("%s (%s)", m.Addr, m.State))
		}
	}
	if len(list) == 0 {
		return "the masters"
	}
	return strings.Join(list, ", ")
}
