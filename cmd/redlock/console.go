package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// A console prints results and errors, as text or as JSON, and asks the user for confirmation.
type console struct {
	json           bool
	yes            bool // do not ask the user for confirmation
	stdout, stderr io.Writer
}

// result prints v as JSON, or text if the output is not JSON.
func (c *console) result(v any, text string) {
	_ = c.write(v, text) // fails if no process reads the output
}

// write is like result, and returns the error.
func (c *console) write(v any, text string) error {
	if c.json {
		return encode(c.stdout, v)
	}
	_, err := fmt.Fprint(c.stdout, text)
	return err
}

// say prints a progress line, unless the output is JSON.
func (c *console) say(to io.Writer, line string) {
	if !c.json {
		fmt.Fprintln(to, line)
	}
}

// complain prints an error.
func (c *console) complain(err error) {
	if c.json {
		_ = encode(c.stderr, map[string]string{"error": err.Error()}) // fails if no process reads the output
		return
	}
	fmt.Fprintln(c.stderr, err)
}

// encode writes v as one line of JSON.
func encode(to io.Writer, v any) error {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// addYes adds the flag --yes to cmd, which may ask for confirmation. asks reports whether cmd will ask; asks is nil if
// that is not known in advance. If cmd will ask, and there is neither --yes nor a terminal, cmd fails before it sends
// anything.
func (c *console) addYes(cmd *cobra.Command, asks func() bool) {
	cmd.Flags().BoolVar(&c.yes, "yes", false, "do not ask for confirmation")
	work := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if asks != nil && asks() && !c.yes && !stdinIsTerminal() {
			return wrongCall(cmd, errNoTerminal(cmd.Name()))
		}
		return work(cmd, args)
	}
}

func errNoTerminal(command string) error {
	return fmt.Errorf("redlock %[1]s: no terminal to ask for confirmation: see --yes in redlock %[1]s --help", command)
}

// confirm asks question, and returns nil if the answer is yes. Otherwise it returns an error with the text undone.
func (c *console) confirm(command, question, undone string) error {
	switch {
	case c.yes:
		return nil
	case !stdinIsTerminal():
		return errNoTerminal(command)
	}
	fmt.Fprint(c.stderr, question, " [y/N] ")
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // if the input ends, the answer is no
	if line = strings.ToLower(strings.TrimSpace(line)); line == "y" || line == "yes" {
		return nil
	}
	return errors.New("redlock " + command + ": " + undone)
}

// aside makes all writes to stderr, and to the log, non-blocking.
func (c *console) aside() {
	w := newAside(c.stderr)
	c.stderr = w
	log.SetOutput(w)
}

// flush waits briefly for reports that are still queued.
func (c *console) flush() {
	if w, ok := c.stderr.(aside); ok {
		w.flush(time.Second)
	}
}

// An aside is a writer that never blocks. A goroutine writes the queued output, which may block (a full pipe, a stopped
// terminal). If the queue is full, output is dropped.
type aside struct {
	to    io.Writer
	queue chan func()
}

func newAside(to io.Writer) aside {
	w := aside{to, make(chan func(), 1000)}
	go func() {
		for work := range w.queue {
			work()
		}
	}()
	return w
}

// Write queues p. It never blocks, and never fails.
func (w aside) Write(p []byte) (int, error) {
	text := bytes.Clone(p)
	select {
	case w.queue <- func() { _, _ = w.to.Write(text) }: // continue if no process reads the output
	default:
	}
	return len(p), nil
}

// flush waits until everything is written, for at most d.
func (w aside) flush(d time.Duration) {
	written, timeout := make(chan struct{}), time.After(d)
	select {
	case w.queue <- func() { close(written) }:
	case <-timeout:
		return
	}
	select {
	case <-written:
	case <-timeout:
	}
}
