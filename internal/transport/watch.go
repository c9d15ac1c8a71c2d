package transport

import (
	"maps"
	"slices"
	"sync"
)

// An Event reports that a session of a master is up, that a heartbeat has refreshed the Info of the master, or that the
// master is down.
type Event struct {
	Master  int
	Session uint64 // > 0, strictly increasing per master; 0 when down
	Info    Info   // zero when down
	Err     error  // *Error; nil while up
}

// watchers delivers events.
type watchers struct {
	mu   sync.Mutex            // held while a handler runs
	last map[int]Event         // by master; a master is absent until its first attempt to connect has ended
	list map[*func(Event)]bool // the handlers
}

// Watch calls f with the present state of each master whose first attempt to connect has ended, then returns. From then
// on, f is called for each event. Events of one master arrive in order, and none is omitted. Calls of f do not overlap.
// A master that stays down is reported again only when the reason changes.
//
// f is called by the goroutine of a connection, with locks held: it must not block, and must call neither Watch, stop
// nor Close. stop waits until a running call of f has returned; f is not called again afterwards. stop may be called
// more than once. There are no events after Close.
func (t *Transport) Watch(f func(Event)) (stop func()) {
	ws := &t.watchers
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, i := range slices.Sorted(maps.Keys(ws.last)) {
		f(ws.last[i])
	}
	ws.list[&f] = true
	return func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		delete(ws.list, &f)
	}
}

// emit delivers an event. The events of a master are in order: while a session is open, emit is called with beats.mu
// held, and at other times only by the goroutine of the master.
func (ws *watchers) emit(event Event) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	last := ws.last[event.Master]
	if event.Err != nil && last.Err != nil && last.Err.Error() == event.Err.Error() {
		return
	}
	ws.last[event.Master] = event
	for handler := range ws.list {
		(*handler)(event)
	}
}
