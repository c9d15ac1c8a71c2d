package transport

import (
	"maps"
	"slices"
	"sync"
)

// Event reports a change of a master: a session is up, a heartbeat has read its Info again, or the master is down.
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

// Watch calls f for the present state of each master that has one, before Watch returns, and from then on for each
// event. Events of one master arrive in order and are never omitted; calls of f do not overlap. A master that stays
// down is reported again only when the reason changes.
//
// f is called by the goroutine of a connection, with locks held: it must not block, and must call neither Watch, stop
// nor Close. stop waits for a running f to return, after which f will not be called again; it may be called more than
// once. There is no event after Close.
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

// emit delivers an event. Only the goroutine of the master calls it, so the events of a master are in order.
func (ws *watchers) emit(e Event) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	last := ws.last[e.Master]
	if e.Err != nil && last.Err != nil && last.Err.Error() == e.Err.Error() {
		return
	}
	ws.last[e.Master] = e
	for f := range ws.list {
		(*f)(e)
	}
}
