package main

import (
	"fmt"
	"io"
	"os"
)

// A progress is one line that is written over again. The nil progress writes nothing.
type progress struct{ w io.Writer }

// newProgress returns a progress on f, nil where f is no terminal.
func newProgress(f *os.File) *progress {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	if null, err := os.Stat(os.DevNull); err == nil && os.SameFile(info, null) {
		return nil
	}
	return &progress{w: f}
}

func (p *progress) say(format string, args ...any) {
	if p != nil {
		fmt.Fprintf(p.w, "\r\x1b[K"+format, args...)
	}
}

func (p *progress) clear() {
	if p != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
