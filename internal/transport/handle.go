package transport

// A Handle gives this module the Transport of a public type that embeds the Handle. Users of that type see neither.
type Handle struct{ t *Transport }

// Handle returns the Handle of t.
func (t *Transport) Handle() Handle { return Handle{t} }

func (h Handle) transport() *Transport { return h.t }

// pooled is implemented by the types that embed a [Handle]: *pool.Pool.
type pooled[T any] interface {
	*T
	transport() *Transport
}

// Of returns the Transport of a pool. It panics if the pool is nil, for example because the error of pool.Open was
// ignored.
func Of[T any, P pooled[T]](pool P) *Transport {
	if pool == nil || pool.transport() == nil {
		panic("pool: the Pool is nil, or not made by Open or New: see the error of the call that makes it")
	}
	return pool.transport()
}
