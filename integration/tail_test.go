package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// A tail reads the histories of all processes in a directory as they grow.
type tail struct {
	dir    string
	read   map[string]int64 // bytes read, by file
	events []event
}

// more reads the new lines. An incomplete line is left for later; that of a killed process is never read.
func (h *tail) more() error {
	paths, err := filepath.Glob(filepath.Join(h.dir, "*.jsonl"))
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

func (h *tail) file(path string) error {
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
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		h.events = append(h.events, e)
	}
	h.read[path] += int64(whole)
	return nil
}
