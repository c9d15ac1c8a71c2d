package transport

import (
	"slices"
	"strconv"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// A Bucket identifies the bucket of a cluster that a Transport serves. The zero Bucket is for a Transport without a
// cluster.
type Bucket struct{ Number, Of int } // Number is from 1 to Of

// Tag returns the hash tag of the bucket, such as "{17}". The tag follows the prefix in every key of the bucket, so
// that all these keys are in one hash slot. For the zero Bucket, Tag returns "".
func (bucket Bucket) Tag() string {
	if bucket.Of == 0 {
		return ""
	}
	return "{" + strconv.Itoa(bucket.Number) + "}"
}

// Bucket returns the bucket that t serves; see [OpenBuckets].
func (t *Transport) Bucket() Bucket { return t.bucket }

// OpenBuckets makes a Transport with [New] for each bucket of the clusters among the masters. In each Transport a
// cluster is one master: the node that owns the bucket's hash slot. Masters that are not clusters are in every
// Transport, with one connection for each. If no master is a cluster, OpenBuckets makes one Transport.
func OpenBuckets(urls []string, opts ...Option) ([]*Transport, error) {
	masters, buckets := make([]Master, len(urls)), 0
	for i, u := range urls {
		m := URL(u)
		if masters[i] = m; m.buckets == 0 || m.err != nil {
			continue
		}
		if buckets != 0 && buckets != m.buckets {
			return nil, fault.Invalid("one cluster has %d buckets, another %d: the counts must be equal", buckets, m.buckets)
		}
		buckets = m.buckets
	}
	if buckets == 0 {
		t, err := New(masters, opts...)
		return []*Transport{t}, err
	}
	pools, shared := make([]*Transport, buckets), new(beats)
	for i := range pools {
		list := slices.Clone(masters)
		for j := range list {
			if list[j].buckets > 0 {
				list[j].bucket = i + 1
				list[j].Name += Bucket{i + 1, buckets}.Tag()
			}
		}
		t, err := build(list, shared, opts)
		if err != nil {
			for _, opened := range pools[:i] {
				_ = opened.Close() // nothing has been sent yet
			}
			return nil, err
		}
		t.bucket = Bucket{i + 1, buckets}
		pools[i] = t
	}
	return pools, nil
}
