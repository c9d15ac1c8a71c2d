package pipe

import "runtime"

// writer holds the fields that only the writer uses.
type writer struct {
	spare  []request // buffer for the next queue
	busy   bool      // whether the last batch had more than one request
	frames []byte    // buffer for the encoded commands of a batch
}

// write takes the whole queue, writes it, flushes once, and repeats.
func (p *Pipe) write() {
	for batch := p.await(); batch != nil; batch = p.await() {
		if begun, err := p.writeBatch(batch); err != nil {
			p.mu.Lock()
			p.end.unbegun = len(batch) - begun
			p.mu.Unlock()
			p.Kill("write", err)
			return
		}
		clear(batch)
		p.out.spare = batch[:0]
	}
}

// await waits until the queue is not empty, and moves all its requests to inflight. It returns nil when the
// connection has ended.
func (p *Pipe) await() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.end.dead && len(p.queue) == 0 {
		p.wake.Wait()
	}
	if p.out.busy {
		// Let callers that are ready to run add to the batch first: fewer and larger writes outweigh the short delay. With
		// a single caller, no other request can be added, so do not wait.
		p.mu.Unlock()
		runtime.Gosched()
		p.mu.Lock()
	}
	if p.end.dead {
		return nil
	}
	batch := p.queue
	p.out.busy = len(batch) > 1
	now := p.now()
	for i := range batch {
		r := &batch[i]
		r.since = now
		r.eval = r.eval || p.byText && r.call.Script.Once
	}
	p.inflight = append(p.inflight, batch...)
	p.queue = p.out.spare[:0]
	return batch
}

// flushAt is how many bytes of commands are collected before they are written.
const flushAt = 64 << 10

// writeBatch writes the batch. begun is the number of requests that were started, including one that failed.
func (p *Pipe) writeBatch(batch []request) (begun int, err error) {
	frames := p.out.frames[:0]
	for begun < len(batch) {
		r := &batch[begun]
		begun++
		frames = r.call.Append(frames, r.stamp, r.eval)
		if len(frames) >= flushAt || begun == len(batch) {
			if err = p.conn.Write(frames); err != nil {
				break
			}
			frames = frames[:0]
		}
	}
	if cap(frames) <= 2*flushAt { // do not keep a buffer that grew for the text of a script: texts are rarely sent
		p.out.frames = frames[:0]
	}
	return begun, err
}
