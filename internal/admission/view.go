package admission

import (
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// A Phase is the stage of a master on its way to voting.
type Phase uint8

// Phases of a master.
const (
	Connecting   Phase = iota // the first connection, or the read of the record, is pending
	Down                      // unreachable, or rejected by the pool
	InQuarantine              // does not vote, because locks that it may have lost could still be valid
	Voting
	Blocked // cannot vote until a problem is fixed
)

var phaseNames = [...]string{"connecting", "down", "quarantine", "voting", "blocked"}

// String returns the name of p in traces and errors.
func (p Phase) String() string { return phaseNames[p] }

// A State describes one master for rounds.
type State struct {
	Phase   Phase
	Session uint64 // the number of the session with the server; 0 if there is none
	Stamp   string // the stamp that calls carry: that of the admission record, or Unread; "" if the restart guard is off
	// Text is the admission record that was read on this session, and Record is the parsed Text. Both are zero if there
	// is no valid record, or if the restart guard is off.
	Text   string
	Record scripts.Record
	Agrees bool // whether Record has the client's shard, and the masters of its configuration or of the previous one
	// Incarnation increases whenever the master may have lost data, for example because another server is found at its
	// address. The leases of earlier incarnations are treated as lost on this master.
	Incarnation uint64
	Over        int64 // the end of the quarantine if Phase is InQuarantine, in microseconds of the master's clock
	Read        int64 // the master's time when the record was read, in microseconds
	Admitted    bool  // whether the record admits the connected server, regardless of the epoch
	// Backlog is repl-backlog-ttl; 0 if the backlog is never freed or the value is unknown. A master has no vote if
	// Backlog is not 0 and below the max TTL.
	Backlog  time.Duration
	ClockOff bool          // whether the clock is more than 15 s off the median; Phase may still be Voting
	Off      time.Duration // how far the clock is ahead of the median; negative if the clock is behind
	Err      error         // why the master does not vote; nil if it votes
	// Guarded reports whether the restart guard is off here, but an admission record shows clients that have it on.
	Guarded bool
	// Lossy and Unverified are those of the Fact if the master is declared durable, or its record calls it durable.
	Lossy      string
	Unverified bool
}

// A View is the state of all masters that rounds use. A View and the data that it points to never change.
type View struct {
	Config     *quorum.Config
	Masters    []State // indexed by the number in the pool; the length is at least Config.Slots
	Voting     quorum.Set
	Connecting quorum.Set
	Encoder    *scripts.Encoder
	// Voted reports whether any master votes, or once had a record that admits it: a client may hold a lock. It never
	// becomes false again.
	Voted    bool
	Evidence Evidence // zero without shards
}

// Hopeful reports whether a round should wait before it is sent: no quorum votes now, but one may vote soon.
func (v *View) Hopeful() bool {
	r := v.Config.Rule
	return !r.Won(v.Voting) && r.Won(v.Voting|v.Connecting)
}

// AllKnown reports whether the state of each master is known.
func (v *View) AllKnown() bool { return v.Connecting == 0 }
