package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

func main() {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // "go test" hears it too, ends, and then so does this
	status, err := run(os.Stdout, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests:", err)
	}
	os.Exit(status)
}

// run runs "go test" with args and returns its status. The error is one of starting it or of reading its output.
func run(w io.Writer, args []string) (status int, err error) {
	began := time.Now()
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	r := report{w: w, packages: map[string]*packageRun{}, names: map[string][]string{}}
	lines := bufio.NewReader(out) // a line may have any length
	for err == nil {
		var line []byte
		line, err = lines.ReadBytes('\n')
		r.line(line)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	var exit *exec.ExitError
	if ended := cmd.Wait(); errors.As(ended, &exit) && exit.Exited() {
		status = exit.ExitCode()
	} else if ended != nil || err != nil {
		status, err = 1, errors.Join(err, ended)
	}
	r.end(status == 0, time.Since(began))
	return status, err
}
