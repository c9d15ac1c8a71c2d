package reference

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
)

// noFence is the fence of a name that has none.
const noFence = "0000000000000000"

const (
	window = float64(skew.Window / 1000) // in us
	kept   = int64(scripts.FenceKept / 1e6)
)

// A hash is what a script reads of the hash of its name before anything else, as common.lua does.
type hash struct {
	fence, kind string
	top         float64 // the fence as a number
	queued      bool
	left        int64 // PTTL
	kept        int64 // how long the key outlives its lease, in ms
}

// read reads the hash. marks says which kind the script would give a new hash.
func (c *call) read() hash {
	h := c.typed(c.key(1), Hash)
	n := hash{left: c.state.TTL(c.now, c.key(1)), kept: h.kept()}
	fence, there := h.field(scripts.FieldFence)
	n.kind, _ = h.field(scripts.FieldKind)
	_, n.queued = h.field(scripts.FieldQueue)
	if !there && n.left != -2 {
		panic(NoLock)
	}
	if !there {
		fence = noFence
	}
	if n.fence = fence; fence == "" || strings.Trim(fence, "0123456789") != "" {
		panic(BadFence)
	}
	n.top = number(fence)
	return n
}

// set models HSET of some fields of the hash. A new hash gets the fields in marks.
func (c *call) set(marks string, pairs ...string) {
	if marks != "" {
		pairs = append(pairs, scripts.FieldKind, marks)
	}
	for i := 0; i < len(pairs); i += 2 {
		c.state.SetField(c.now, c.key(1), pairs[i], pairs[i+1])
	}
}

// fenceLife returns how long a fence is kept, in ms: until 60 s after the latest ballot that this master accepts, or
// until 60 s after the fence itself if that is later.
func (c *call) fenceLife(ballot float64) int64 {
	//mutant:fence-kept = 1000 + int64(math.Ceil(max(0, ballot-float64(c.now)-window)/1000))
	return kept + int64(math.Ceil(max(0, ballot-float64(c.now)-window)/1000))
}

// prolong lets the hash, and with it the shares, live for at least these ms.
func (c *call) prolong(n *hash, marks string, life int64) {
	if n.left != -1 && c.state.TTL(c.now, c.key(1)) < life {
		c.state.Expire(c.now, c.key(1), life)
	}
	//mutant:shares-live-on = false
	if shares := c.sharesKey(); marks == scripts.KindShared && c.exists(shares) && c.state.TTL(c.now, shares) < life {
		c.state.Expire(c.now, shares, life)
	}
}

// kept returns how long the key of a hash outlives its lease, in ms.
func (v Value) kept() int64 {
	if text, there := v.field(scripts.FieldKept); there {
		return int64(number(text))
	}
	return kept
}

// live lets the hash live until a lease has expired after ms, and then for as long as the fence, this ballot, needs.
func (c *call) live(n *hash, ms int64, ballot float64) {
	life := c.fenceLife(ballot)
	if life > kept {
		c.set("", scripts.FieldKept, plain(float64(life)))
	} else if n.kept != kept {
		c.state.deleteFields(c.now, c.key(1), scripts.FieldKept)
	}
	c.state.Expire(c.now, c.key(1), ms+life)
}

// leases returns the number of leases in the hash of a plain lock.
func (v Value) leases() int {
	count := len(v.Fields)
	for _, name := range []string{scripts.FieldFence, scripts.FieldQueue, scripts.FieldKept} {
		if _, there := v.field(name); there {
			count--
		}
	}
	return count
}

// raise raises the fence, unless an acquire with this ballot would be ahead.
func (c *call) raise(n *hash, marks string, ballot float64) {
	//mutant:reader-tombstone = false
	//mutant:tombstone = false
	if ballot > n.top && ballot <= max(float64(c.now), n.top)+window {
		c.set("", scripts.FieldFence, digits(ballot))
		c.set(marks)
		if n.kind != "" || marks != "" { // shares have deadlines of their own
			c.prolong(n, marks, c.fenceLife(ballot))
		} else if n.left != -1 {
			c.live(n, max(0, c.state.TTL(c.now, c.key(1))-n.kept), ballot)
		}
	}
}

// A lease is the lease in the hash of a plain lock; its id is "" if there is none.
type lease struct {
	id, text string
	ends     float64 // until
}

var leaseText = regexp.MustCompile(`(?s)^([0-9]+~?)( [0-9]+ ([0-9]+) )([0-9]+)(.*)$`)

// holder reads the lease, as holder.lua does.
func (c *call) holder() (l lease) {
	v := c.typed(c.key(1), Hash)
	count := v.leases()
	if count == 0 {
		return lease{}
	}
	for _, f := range v.Fields {
		if f.Name != scripts.FieldFence && f.Name != scripts.FieldQueue && f.Name != scripts.FieldKept {
			l.id, l.text = f.Name, f.Value
		}
	}
	found := leaseText.FindStringSubmatch(l.text)
	if count > 1 || found == nil || len(l.id)+len(l.text) > 1500 {
		panic(NoLock)
	}
	l.ends = number(found[4])
	return l
}

// expired reports whether a lease in this hash has expired for a request of this time: by both clocks.
func (n *hash) expired(l *lease, time float64) bool {
	//mutant:ballot-deadline 2= true
	//mutant:own-deadline 1= true
	return n.over() && time > l.ends
}

// over reports whether a lease in this hash has expired by this master's clock. Of a key without a TTL the clock says
// nothing, and the other one decides.
func (n *hash) over() bool { return n.left < n.kept }

// remaining returns the ms after which a lease has expired for a request of this time.
func (n *hash) remaining(l *lease, time float64) int64 {
	return max(1, n.left-n.kept, int64(math.Floor((l.ends-time)/1000))+1)
}

// otherKind returns the reply to a call for a name of another kind, or nil.
func (c *call) otherKind(n *hash, want string) any {
	switch {
	//mutant:other-kind = true
	case n.left == -2 || n.kind == want:
		return nil
	case n.kind == "":
		return []any{int64(quorum.OtherKind), scripts.KindLock, c.now}
	}
	return []any{int64(quorum.OtherKind), n.kind, c.now}
}

// digits returns a ballot as the scripts write it.
func digits(ballot float64) string { return fmt.Sprintf("%016.0f", ballot) }
