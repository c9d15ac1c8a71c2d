package transport

// A Handle gives this module the Transport of a public type that embeds the Handle. Users of that type see neither.
type Handle struct{ t *Transport }

// Handle returns the Handle of t.
func (t *Transport) Handle() Handle { return Handle{t} }

func (h Handle) transport() *Transport { return h.t }

// Pooled is implemented by the types that embed a [Handle]: *pool.Pool.
type Pooled interface{ transport() *Transport }

// Of returns the Transport of p.
func Of(pool Pooled) *Transport { return pool.transport() }
