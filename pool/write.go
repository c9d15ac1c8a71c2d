package pool

import "runtime"

// busyBatch is how long a batch is when callers come faster than single writes.
const busyBatch = 2

// queueLocked appends r to the queue and reports whether the caller must nudge the writer after unlocking. A dead
// session takes requests too: finish answers them.
func (s *session) queueLocked(r request) (wake bool) {
	if len(s.queue) == 0 {
		s.queueSince = s.m.since()
	}
	s.queue = append(s.queue, r)
	wake = s.idle
	s.idle = false
	return wake
}

func (s *session) nudge() {
	select {
	case s.wake <- struct{}{}:
	default: // it has been told already
	}
}

// write is the writer: it takes the whole queue, hands it to redigo, flushes once, and looks again.
func (s *session) write() {
	for {
		batch := s.await()
		if batch == nil {
			return
		}
		begun, err := s.writeBatch(batch)
		unbegun := len(batch) - begun
		clear(batch)
		s.spare = batch[:0]
		if err != nil {
			s.failed(unbegun, err)
			return
		}
	}
}

// await waits until there is something to write, and takes it all. It returns nil at the end.
func (s *session) await() []request {
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	for !s.dead && len(s.queue) == 0 {
		s.idle = true
		m.mu.Unlock()
		<-s.wake
		m.mu.Lock()
		s.idle = false
	}
	if s.busy {
		// Callers that are ready to run get to add to the batch first: fewer and larger writes are worth more than the
		// moment. Where there is one caller there is nobody to wait for.
		m.mu.Unlock()
		runtime.Gosched()
		m.mu.Lock()
	}
	if s.dead {
		return nil
	}
	return s.takeLocked()
}

// takeLocked takes the whole queue, which is in flight from here on.
func (s *session) takeLocked() []request {
	batch := s.queue
	s.busy = len(batch) >= busyBatch
	for i := range batch {
		batch[i].since = s.queueSince
	}
	if s.busy && !s.apart {
		s.groupLocked(batch)
	}
	s.inflight = append(s.inflight, batch...)
	s.queue = s.spare[:0]
	return batch
}

// writeBatch writes and flushes. begun is how many requests redigo has been given, the failing one included.
func (s *session) writeBatch(batch []request) (begun int, err error) {
	for begun < len(batch) {
		from := begun
		begun += max(1, int(batch[from].many))
		if err := s.put(batch[from:begun]); err != nil {
			return begun, err
		}
	}
	return begun, s.link.flush()
}

// failed ends the session after a write that failed.
func (s *session) failed(unbegun int, err error) {
	s.m.mu.Lock()
	s.unbegun, s.writeErr = unbegun, err
	s.killLocked(nil, "write")
	s.m.mu.Unlock()
	s.link.close()
}
