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

// watchers delivers events. Each watcher has its own goroutine, so no connection ever waits for a handler.
type watchers struct {
	mu     sync.Mutex
	news   *sync.Cond    // signals an event, a stop, or the end
	last   map[int]Event // by master; a master is absent until its first attempt to connect has ended
	list   map[*watcher]bool
	closed bool
}

// A watcher is guarded by watchers.mu.
type watcher struct {
	queue   []Event
	stopped bool
}

func (ws *watchers) init() {
	ws.news, ws.last, ws.list = sync.NewCond(&ws.mu), make(map[int]Event), make(map[*watcher]bool)
}

// Watch calls f for the present state of each master that has one, before Watch returns, and from then on for each
// event, shortly after it has happened. Events of one master arrive in order and are never omitted; calls of f do not
// overlap. A master that stays down is reported again only when the reason changes.
//
// f must not block for long, and must call neither stop nor Close. stop waits for a running f to return, after which f
// will not be called again; it may be called more than once. Close stops all watchers, after the last events.
func (t *Transport) Watch(f func(Event)) (stop func()) {
	ws, w := &t.watchers, &watcher{}
	ws.mu.Lock()
	var present []Event
	for _, i := range slices.Sorted(maps.Keys(ws.last)) {
		present = append(present, ws.last[i])
	}
	ws.list[w] = true
	ws.mu.Unlock()
	for _, e := range present {
		f(e)
	}
	go func() {
		for e, ok := ws.next(w); ok; e, ok = ws.next(w) {
			f(e)
		}
	}()
	return func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		w.stopped = true
		ws.news.Broadcast()
		for ws.list[w] {
			ws.news.Wait()
		}
	}
}

// next waits for the next event of w. It returns false if w was stopped or the Transport was closed; the handler is
// not called again then.
func (ws *watchers) next(w *watcher) (e Event, ok bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for len(w.queue) == 0 && !w.stopped && !ws.closed {
		ws.news.Wait()
	}
	if len(w.queue) == 0 || w.stopped {
		delete(ws.list, w)
		ws.news.Broadcast()
		return Event{}, false
	}
	e = w.queue[0]
	w.queue = w.queue[1:]
	return e, true
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
	for w := range ws.list {
		w.queue = append(w.queue, e)
	}
	ws.news.Broadcast()
}

// close waits until no handler is running.
func (ws *watchers) close() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed = true
	ws.news.Broadcast()
	for len(ws.list) > 0 {
		ws.news.Wait()
	}
}
