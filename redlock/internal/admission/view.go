package admission

import (
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// A Phase is how far a master is from voting.
type Phase uint8

// The phases.
const (
	Connecting   Phase = iota // never up so far, or its record is being read
	Down                      // not reachable, or refused by its connection
	InQuarantine              // it may have forgotten locks, and waits
	Voting                    // it votes
	Blocked                   // it cannot be admitted until somebody mends something
)

var phaseNames = [...]string{"connecting", "down", "quarantine", "voting", "blocked"}

// String is the word for p in traces and errors.
func (p Phase) String() string { return phaseNames[p] }

// A State is what a round needs to know of one master.
type State struct {
	Phase   Phase
	Session uint64 // of its connection; 0: none
	Stamp   string // of its admission record, as calls expect it; "" if the guard is off
	Record  string // its admission record as it was read on this session, "" if there is none
	// Masters and Next are the lists of its record, and Agrees reports whether they, and its shard, are those of the
	// client's configuration or of the one before it.
	Masters, Next string
	Agrees        bool
	// Longest is the longest TTL that its record allows, and Quarantine how long a quarantine must last; 0: not known, or
	// the guard is off.
	Longest, Quarantine time.Duration
	// Generation grows whenever another server, or one that may have forgotten, is found at this address. What an older
	// generation granted counts as lost.
	Generation uint64
	Over       int64 // InQuarantine: when it is over, in microseconds of the master's clock
	Epoch      int64 // of its record, 0 where it was not read; like the next three
	Raised     int64 // since when it has this epoch, us
	Alone      int64 // the largest epoch whose set may act alone
	Read       int64 // the master's time when the record was read, us
	Admitted   bool  // its record admits it, whatever epoch this program has
	// Backlog is its repl-backlog-ttl; 0: never freed, or not known. A guard time above it costs the master its vote.
	Backlog  time.Duration
	ClockOff bool // its clock is more than 15 s off the median: it votes, but no waiter should count on it
	// Err is why it does not vote; nil where it does. Its text was made when the View was: a time left in it may be a
	// second old. Over says it exactly.
	Err error
}

// A View is what all rounds that begin now go by. Neither it nor what it points to is ever changed.
type View struct {
	Config     *quorum.Config
	Masters    []State // by the pool's number; at least Config.Slots
	Voting     quorum.Set
	Connecting quorum.Set
	Encoder    *scripts.Encoder
	// Where the masters are a group: whether all of them have records that name it, whether one was seen that has been
	// admitted as one of it, and whether one says that it is another group.
	Named, Begun, Other bool
}

// Hopeful reports whether it is worth waiting before a round is sent: no quorum votes now, and one may in a moment.
func (v *View) Hopeful() bool {
	r := v.Config.Rule
	return !r.Won(v.Voting) && r.Won(v.Voting|v.Connecting)
}

// Settled reports whether something is known of each master.
func (v *View) Settled() bool { return v.Connecting == 0 }
