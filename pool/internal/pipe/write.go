package pipe

import "runtime"

// writer is what the writer alone uses.
type writer struct {
	spare   []request
	busy    bool  // the last batch had more than one call
	scratch []any // arguments
	stamp   any   // the text of the last stamp, boxed: it is the same for nearly all calls
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

// writeBatch writes and flushes. begun is how many requests were begun, the failing one included.
func (p *Pipe) writeBatch(batch []request) (begun int, err error) {
	for begun < len(batch) {
		r := &batch[begun]
		begun++
		command, args := "EVALSHA", p.arguments(r)
		switch {
		case r.call.Script.SHA == "": // see Command
			command, args = args[0].(string), args[1:]
		case r.eval:
			command = "EVAL"
		}
		if err := p.conn.Send(command, args...); err != nil {
			return begun, err
		}
	}
	return begun, p.conn.Flush()
}

// arguments returns what follows the command's name. The slice is valid until the next call; it is either the call's
// own, which nobody changes, or a copy in scratch.
func (p *Pipe) arguments(r *request) []any {
	c, w := r.call, &p.out
	if c.Stamp == 0 && !r.eval {
		return c.Args
	}
	w.scratch = append(w.scratch[:0], c.Args...)
	if c.Stamp > 0 {
		if w.stamp != r.text {
			w.stamp = r.text
		}
		w.scratch[c.Stamp] = w.stamp
	}
	if r.eval {
		w.scratch[0] = c.Script.Text
	}
	return w.scratch
}
