package pipe

import "runtime"

// writer is what the writer alone uses.
type writer struct {
	spare  []request
	busy   bool   // the last batch had more than one call
	frames []byte // the commands of a batch
}

// write takes the whole queue, writes it, flushes once, and looks again.
func (p *Pipe) write() {
	for batch := p.await(); batch != nil; batch = p.await() {
		if begun, err := p.writeBatch(batch); err != nil {
			p.mu.Lock()
			p.end.unbegun, p.end.writeErr = len(batch)-begun, err
			p.mu.Unlock()
			p.Kill("write", nil)
			return
		}
		clear(batch)
		p.out.spare = batch[:0]
	}
}

// await waits until there is something in the queue, and takes it all into flight. It returns nil at the end.
func (p *Pipe) await() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.end.dead && len(p.queue) == 0 {
		p.wake.Wait()
	}
	if p.out.busy {
		// Callers that are ready to run add to the batch first: fewer and larger writes are worth more than the
		// moment. With a single caller there is nobody to wait for.
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

// flushAt bounds the commands that are collected before they are written, in bytes.
const flushAt = 64 << 10

// writeBatch writes. begun is how many requests were begun, the failing one included.
func (p *Pipe) writeBatch(batch []request) (begun int, err error) {
	if !p.conn.Raw() {
		return p.sendBatch(batch)
	}
	frames := p.out.frames[:0]
	for begun < len(batch) {
		r := &batch[begun]
		begun++
		frames = r.call.Append(frames, r.text, r.eval)
		if len(frames) >= flushAt || begun == len(batch) {
			if err = p.conn.Write(frames); err != nil {
				break
			}
			frames = frames[:0]
		}
	}
	if cap(frames) <= 2*flushAt { // a script's text may be long, and is rare
		p.out.frames = frames[:0]
	}
	return begun, err
}

// sendBatch writes to a connection that a *redis.Pool has made, and which encodes commands itself.
func (p *Pipe) sendBatch(batch []request) (begun int, err error) {
	for begun < len(batch) {
		r := &batch[begun]
		begun++
		command, args := r.call.Args(r.text, r.eval)
		if err := p.conn.Send(command, args...); err != nil {
			return begun, err
		}
	}
	return begun, p.conn.Flush()
}
