package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// A Tail reads the histories of all processes in a directory as they grow.
type Tail struct {
	Dir    string
	read   map[string]int64 // number of bytes read, by path; nil before the first call of More
	Events []Event
}

// More appends the events of all new lines to Events. It leaves an incomplete line to a later call, when the line is
// complete; the incomplete last line of a killed process is never read.
func (h *Tail) More() error {
	if h.read == nil {
		h.read = map[string]int64{}
	}
	paths, err := filepath.Glob(filepath.Join(h.Dir, "*.jsonl"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := h.file(path); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
	return nil
}

func (h *Tail) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	text := make([]byte, info.Size()-h.read[path])
	if _, err := f.ReadAt(text, h.read[path]); err != nil {
		return err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	for line := range bytes.Lines(text[:whole]) {
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		h.Events = append(h.Events, e)
	}
	h.read[path] += int64(whole)
	return nil
}

// Read returns the histories of all processes in a directory.
func Read(dir string) ([]Event, error) {
	h := Tail{Dir: dir}
	err := h.More()
	return h.Events, err
}
