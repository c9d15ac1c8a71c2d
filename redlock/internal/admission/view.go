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
	Connecting   Phase = iota // never up so far, or its record is being read
	Down                      // unreachable, or refused by its connection
	InQuarantine              // it may have lost locks, and waits
	Voting                    // it votes
	Blocked                   // it cannot be admitted until a problem is fixed
)

var phaseNames = [...]string{"connecting", "down", "quarantine", "voting", "blocked"}

// String returns the name of p in traces and errors.
func (p Phase) String() string { return phaseNames[p] }

// A State describes one master as far as rounds need it.
type State struct {
	Phase   Phase
	Session uint64 // of its connection; 0 if there is none
	Stamp   string // the stamp of its admission record that calls expect; "" if the guard is off
	// Text is its admission record, read on this session, and Record is the parsed Text. Both are zero if there is no
	// record, or if the guard is off.
	Text   string
	Record scripts.Record
	Agrees bool // Record has the shard of the client, and the masters of its configuration or of the one before
	// Incarnation increases whenever another server, or one that may have lost data, is found at this address. The
	// master is considered to have lost the leases of older incarnations.
	Incarnation uint64
	Over        int64 // if Phase is InQuarantine: the end of the quarantine, in microseconds of the master's clock
	Read        int64 // the master's time when the record was read, us
	Admitted    bool  // its record admits it, at any epoch
	// Backlog is its repl-backlog-ttl; 0: never freed, or unknown. If it is below the max TTL, the master has no
	// vote.
	Backlog  time.Duration
	ClockOff bool          // its clock is more than 15 s off the median: it votes, but waiters should not rely on it
	Off      time.Duration // how far its clock is ahead of the median, negative if it is behind
	// Err is why the master does not vote; nil if it votes. Its text was made with the View, so a remaining time in the
	// text may be a second old. Over is exact.
	Err error
}

// A View is the common state for all rounds that begin now. A View, and the data that it points to, is never changed.
type View struct {
	Config     *quorum.Config
	Masters    []State // indexed by the number in the pool; at least Config.Slots
	Voting     quorum.Set
	Connecting quorum.Set
	Encoder    *scripts.Encoder
	// If the masters are a shard: Named is true once the records of all of them have contained this shard, Begun once one
	// of them was admitted as a master of this shard, and Other while the record of one of them contains another shard.
	Named, Begun, Other bool
}

// Hopeful reports whether it is worth waiting before a round is sent: no quorum votes now, but one may soon.
func (v *View) Hopeful() bool {
	r := v.Config.Rule
	return !r.Won(v.Voting) && r.Won(v.Voting|v.Connecting)
}

// Settled reports whether the state of each master is known.
func (v *View) Settled() bool { return v.Connecting == 0 }
