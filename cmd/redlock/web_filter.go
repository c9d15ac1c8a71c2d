package main

import (
	"slices"
	"strings"
)

// The limits of the filters. With these, a look at the masters reads at most webSight names, however many viewers there
// are, and however many names.
const (
	webFilters    = 20           // maximum number of different filters in use
	webFilterSize = 320          // maximum length of a filter in bytes; the page takes 80 characters
	webSight      = 4 * webNames // maximum number of names that are read again in a look
)

// A webFilter is a text that viewers search the names for.
type webFilter struct {
	viewers int
	matches int // number of names of the last scan that contain the text; -1 before the first search
}

// use adds a viewer with this filter until done is called. It reports false if too many different filters are in use.
func (w *webLooker) use(filter string) (done func(), ok bool) {
	if filter == "" {
		return func() {}, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.filters[filter]
	if f == nil {
		if len(w.filters) >= webFilters {
			return nil, false
		}
		f = &webFilter{matches: -1}
		w.filters[filter] = f
	}
	f.viewers++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if f.viewers--; f.viewers == 0 {
			delete(w.filters, filter)
		}
	}, true
}

// wanted returns the names to read of the sorted names of a scan: the first webNames, and up to webNames that match the
// filters, in equal shares. It counts the matches of each filter.
func (w *webLooker) wanted(names []string) []string {
	list := slices.Clone(names[:min(len(names), webNames)])
	for text, f := range w.filters {
		f.matches = 0
		for _, name := range names {
			if !strings.Contains(name, text) {
				continue
			}
			if f.matches++; f.matches <= webNames/len(w.filters) {
				list = append(list, name)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// narrow forgets the holders of names that are no longer wanted if there are more than webSight. It keeps those of
// names that the scan has not found: they were unlocked, or lost.
func (w *webLooker) narrow(wanted, found []string) {
	for name := range w.sight {
		if len(w.sight) <= webSight-len(wanted) {
			return
		}
		if !contains(wanted, name) && contains(found, name) {
			delete(w.sight, name)
		}
	}
}

// shown returns the names that a viewer with this filter sees of all names that were read. Without a filter, these are
// the first ones of the scan, and those that it has not found, such as names that only have waiters.
func shown(all []webName, filter string, found []string) []webName {
	first := found[:min(len(found), webNames)]
	return slices.DeleteFunc(slices.Clone(all), func(n webName) bool {
		if filter != "" {
			return !strings.Contains(n.Name, filter)
		}
		return !contains(first, n.Name) && contains(found, n.Name)
	})
}

// contains reports whether the sorted list contains name.
func contains(list []string, name string) bool {
	_, ok := slices.BinarySearch(list, name)
	return ok
}
