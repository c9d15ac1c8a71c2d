package reference

import (
	"regexp"
	"strings"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// Scripts of the slots of a semaphore: those of a plain lock, and the mark in the hash of the name.

var keyOfSlot = regexp.MustCompile(`(?s)^(.*\}):slot:[0-9]+/([0-9]+)$`)

// A mark is what a script of a slot reads of the hash of the name, P:{name}.
type mark struct {
	key, kind string
	fresh     bool   // whether the name has no hash
	other     string // the kind of the name, if it is not that of the slot
}

// mark reads the hash of the name to which the slot belongs.
func (c *call) mark() mark {
	found := keyOfSlot.FindStringSubmatch(c.key(1))
	if found == nil {
		panic(badArgument)
	}
	m := mark{key: found[1], kind: "semaphore " + found[2]}
	h := c.typed(m.key, Hash)
	m.fresh = h.Type == None
	_, fenced := h.field(scripts.FieldFence)
	kind, marked := h.field(scripts.FieldKind)
	switch {
	case m.fresh:
	case !fenced:
		panic(NoLock)
	case !marked:
		//mutant:slot-beside-lock drop
		m.other = scripts.KindLock
	//mutant:slot-size = !strings.HasPrefix(kind, "semaphore ")
	case kind != m.kind:
		m.other = kind
	}
	return m
}

// prolongMark marks the name for as long as the hash of the slot lives.
func (c *call) prolongMark(m *mark) {
	life := c.state.TTL(c.now, c.key(1))
	if m.fresh {
		c.state.SetField(c.now, m.key, scripts.FieldFence, noFence)
		//mutant:slot-unmarked drop
		c.state.SetField(c.now, m.key, scripts.FieldKind, m.kind)
	}
	//mutant:mark-life = false
	if c.state.TTL(c.now, m.key) < life {
		c.state.Expire(c.now, m.key, life)
	}
}

func (c *call) slotAcquire() any {
	m := c.mark()
	if m.other != "" {
		if stamp := c.arg(1); stamp == "" || strings.HasPrefix(c.record(c.key(2)), stamp) {
			return []any{int64(quorum.OtherKind), m.other, c.now}
		}
	}
	reply := c.acquire()
	if reply == any(int64(quorum.Granted)) {
		c.prolongMark(&m)
	}
	return reply
}

func (c *call) slotExtend() any {
	m := c.mark()
	if m.other != "" {
		return []any{int64(quorum.OtherKind), m.other, c.now}
	}
	reply := c.extend()
	if reply == any(int64(quorum.Granted)) {
		c.prolongMark(&m)
	}
	return reply
}
