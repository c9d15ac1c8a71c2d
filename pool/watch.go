package pool

import "sync"

// Event tells of a master: a session is up, a heartbeat has read its Info anew, or it is down.
type Event struct {
	Master  int
	Session uint64 // > 0, strictly increasing per master; 0 when down
	Info    Info   // zero when down
	Err     error  // *Error; nil while up
}

// known reports whether the event says anything: a master has no state before its first attempt to connect has ended.
func (e Event) known() bool { return e.Session != 0 || e.Err != nil }

// watchers hands events on. Each watcher has a goroutine of its own, so that no connection ever waits for a handler,
// and no lock is held while one runs.
type watchers struct {
	mu     sync.Mutex
	last   []Event // by master
	list   map[*watcher]struct{}
	closed bool
	wg     sync.WaitGroup
}

type watcher struct {
	queue   []Event // guarded by watchers.mu
	stopped bool    // guarded by watchers.mu
	wake    chan struct{}
	done    chan struct{}
}

// Watch calls f for the present state of each master that has one, before Watch returns, and from then on for each
// event. Events of one master arrive in order and are never left out; the calls of f do not overlap. An event is told
// shortly after it has happened: a Send may meet the new state first. A master that stays down is told again only when
// the reason changes.
//
// f must not block for long, and must call neither stop nor Close. stop returns when f is not running and will not be
// called again; it may be called more than once. Close stops all watchers, after the last events.
func (p *Pool) Watch(f func(Event)) (stop func()) {
	ws := &p.watchers
	w := &watcher{wake: make(chan struct{}, 1), done: make(chan struct{})}
	ws.mu.Lock()
	present := append([]Event(nil), ws.last...)
	closed := ws.closed
	if !closed {
		if ws.list == nil {
			ws.list = make(map[*watcher]struct{})
		}
		ws.list[w] = struct{}{}
		ws.wg.Add(1)
	}
	ws.mu.Unlock()
	for _, e := range present {
		if e.known() {
			f(e)
		}
	}
	if closed {
		return func() {}
	}
	go func() {
		defer ws.wg.Done()
		defer close(w.done)
		ws.serve(w, f)
	}()
	return func() {
		ws.mu.Lock()
		w.stopped = true
		w.queue = nil
		ws.mu.Unlock()
		w.nudge()
		<-w.done
	}
}

// add makes room for one more master.
func (ws *watchers) add() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.last = append(ws.last, Event{})
}

func (ws *watchers) serve(w *watcher, f func(Event)) {
	for range w.wake {
		ws.mu.Lock()
		for len(w.queue) > 0 && !w.stopped {
			batch := w.queue
			w.queue = nil
			ws.mu.Unlock()
			for _, e := range batch {
				if ws.isStopped(w) {
					break
				}
				f(e)
			}
			ws.mu.Lock()
		}
		if w.stopped || ws.closed {
			delete(ws.list, w)
			ws.mu.Unlock()
			return
		}
		ws.mu.Unlock()
	}
}

func (ws *watchers) isStopped(w *watcher) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return w.stopped
}

func (w *watcher) nudge() {
	select {
	case w.wake <- struct{}{}:
	default: // it has been told already
	}
}

// emit is called by the goroutine of the master alone, so the events of a master are in order.
func (ws *watchers) emit(e Event) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	last := &ws.last[e.Master]
	if e.Err != nil && last.Err != nil && last.Err.Error() == e.Err.Error() {
		return
	}
	*last = e
	for w := range ws.list {
		w.queue = append(w.queue, e)
		w.nudge()
	}
}

func (ws *watchers) close() {
	ws.mu.Lock()
	ws.closed = true
	for w := range ws.list {
		w.nudge()
	}
	ws.mu.Unlock()
	ws.wg.Wait()
}
