package admission

import (
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
)

// A Fact contains what one client knows about one master. When the connection ends, Read becomes false, but the last
// record is kept, because its epoch and its durations are still used.
type Fact struct {
	Own         int64         // the master's time, in microseconds, as estimated by this client
	Off         time.Duration // how far Own is ahead of the median of the masters; negative if Own is behind
	Known       bool          // whether the master is up or known to be down
	Up          bool
	Started     int64          // when the server started, in microseconds of its clock; 0 if that is not known
	SetBack     bool           // whether the clock was ahead when the server started: keys may have expired
	Identity    string         // run_id/master_replid2/second_repl_offset of the connected server
	Read        bool           // whether Text was read on the present connection
	Text        string         // the admission record; "" if there is none
	Record      scripts.Record // the parsed Text
	Bad         error          // why Text cannot be parsed; nil if it was parsed or is empty
	Err         error          // why the master is down, or why the last step failed
	Expires     bool           // whether the record has a TTL, which another program has set
	Asked       uint64         // number of the step that returned Text; steps are numbered in the order of sending
	Began       uint64         // number of the last step that was sent before the present quarantine was first seen
	Lost        time.Duration  // how long this client has seen the master down or unknown; 0 if the master is up
	Backlog     time.Duration  // repl-backlog-ttl of the server; 0 if the backlog is never freed or the value is unknown
	Moved       bool           // whether a move of the hash slot, or eviction, may have lost data; Identity stays
	Late        time.Duration  // after a failover: how long the replaced server may have continued to grant locks
	Database    string         // the number of the database of this master; "" if it is not known
	DurableName string         // the escaped address of a master that is declared durable; "" for any other
	// Lossy names the settings with which the server may forget writes; "" if none is known: see transport.Persistence.
	Lossy      string
	Unverified bool // whether Lossy is "", but not all settings are known
	// Leapt is the Since of a record that does not count any more: the clock of the master was seen far off. Keys may have
	// expired early, or will when a clock that is behind is right again. 0 if there is none.
	Leapt int64
	// Doubted is true while it is unclear whether this master's clock is far off or those of other masters. WasSet is then
	// whether this clock has been set meanwhile.
	Doubted, WasSet bool
	Returned        bool      // whether Text was replaced or lost before, and has come back, perhaps without the locks
	former          [8]string // the last records that were replaced or lost, the latest first
}

// Learn parses text, the record that the step with the number asked has returned, and stores the result in f. The
// number of the latest step that was sent is last.
func (f *Fact) Learn(text string, asked, last uint64) {
	if text != f.Text {
		f.Returned = text != "" && slices.Contains(f.former[:], text)
		if f.Text != "" {
			copy(f.former[1:], f.former[:])
			f.former[0] = f.Text
		}
	}
	before, wasRead := f.Record, f.Read
	f.Read, f.Text, f.Asked = true, text, asked
	f.Record, f.Bad = scripts.Record{}, nil
	if text != "" {
		f.Record, f.Bad = scripts.ParseRecord(text)
	}
	if !wasRead || before.Identity != f.Record.Identity || before.Since != f.Record.Since {
		f.Began = last
	}
}

// Lose marks the master as down or reconnected, so that the record is read again.
func (f *Fact) Lose() {
	*f = Fact{
		Known: true, Text: f.Text, Record: f.Record, Bad: f.Bad, Asked: f.Asked, Began: f.Began, Lost: f.Lost,
		DurableName: f.DurableName, Database: f.Database,
		Leapt: f.Leapt, Doubted: f.Doubted, WasSet: f.WasSet, Returned: f.Returned, former: f.former,
	}
}

// replaced reports whether the connected server had a record that admitted it.
func (f *Fact) replaced() bool {
	return slices.ContainsFunc(f.former[:], func(text string) bool {
		r, err := scripts.ParseRecord(text)
		return text != "" && err == nil && r.Admitted && runID(r.Identity) == runID(f.Identity)
	})
}

// last returns the last valid record of the master, even if the master has lost it; nil if none was read.
func (f *Fact) last() *scripts.Record {
	if f.hasRecord() {
		return &f.Record
	}
	for _, text := range f.former {
		if r, err := scripts.ParseRecord(text); text != "" && err == nil {
			return &r
		}
	}
	return nil
}

// hasRecord reports whether a valid record was ever read.
func (f *Fact) hasRecord() bool { return f.Text != "" && f.Bad == nil }

// shown reports whether a valid record was read on this connection.
func (f *Fact) shown() bool { return f.Read && f.hasRecord() }

// isOfServer reports whether the record was written for the connected server, and neither a move of the hash slot nor
// another record nor a leap of the clock has followed. A server that has only freed its replication backlog is still
// the same server.
func (f *Fact) isOfServer() bool {
	//mutant:identity-beyond-run-id 3= runID(f.Record.Identity) == runID(f.Identity)
	//mutant:record-returns 5= true
	return f.shown() && !f.Moved && (f.Record.Identity == f.Identity || freed(f.Record.Identity, f.Identity)) &&
		!f.Returned && !f.leapt() && f.here()
}

// here reports whether the record was written in the database of this client. Databases may change places (SWAPDB).
func (f *Fact) here() bool {
	return f.Database == "" || f.Record.Database == "" || f.Record.Database == f.Database
}

// leapt reports whether the master's clock was seen far off since its record began to count.
func (f *Fact) leapt() bool {
	//mutant:leapt-clock = false
	return f.Leapt != 0 && f.Record.Since == f.Leapt
}

// Compare records the standing of the master's clock, which has moved so far since the doubt began. It reports whether
// the record counted until now and does not any more, so that the master may have lost leases.
//
// If it is doubtful which clocks are wrong, this client does not count the master, and writes nothing. As soon as the
// doubt is over, the record counts again if the clock has not been set meanwhile. Otherwise keys may have expired.
func (f *Fact) Compare(s ballot.Standing, moved time.Duration) (lost bool) {
	if lost = s >= ballot.Doubtful && f.isOfServer(); lost {
		f.Leapt, f.Doubted, f.WasSet = f.Record.Since, s == ballot.Doubtful, false
		return true
	}
	f.WasSet = f.WasSet || f.Doubted && s >= ballot.Near && skew.Excludes(moved)
	switch {
	case s == ballot.Far:
		f.Doubted = false
	case s == ballot.Near && f.Doubted:
		if f.Doubted = false; !f.WasSet {
			f.Leapt = 0
		}
	}
	return false
}

// durableName returns the part of a record by which a restarted master is recognized as durable. It is "" for a master
// that is not declared durable, or whose settings contradict.
func (f *Fact) durableName() string {
	//mutant:durable-verified = false
	if f.Lossy != "" {
		return ""
	}
	return f.DurableName
}

// durable reports whether the operator has declared the master durable, no setting contradicts, and the server has
// never been a replica.
func (f *Fact) durable() bool { return f.durableName() != "" && !promoted(f.Identity) }

// breaks reports whether the server no longer remembers every write, although its record calls it durable. Its
// append-only file has the same record. If the server started from this file, a client that declares it durable would
// believe it, so it must not grant or extend anything that the file lacks, whatever this client declares.
func (f *Fact) breaks() bool {
	//mutant:durable-breaks = false
	return f.Lossy != "" && f.isOfServer() && f.Record.DurableName != ""
}

// remembers reports whether the master is known to have kept all its data: it is durable, and its record admits it and
// contains the address that this client uses. A record that was copied by replication contains another address. A
// machine may start with a clock that is far ahead, until NTP sets it: its keys may then have expired unseen.
func (f *Fact) remembers() bool {
	return f.durable() && f.shown() && f.Record.Admitted && f.Record.DurableName == f.DurableName && !f.Moved &&
		!f.SetBack && !f.Returned && !f.leapt() && f.here()
}

// unknown reports whether the first connection to the master, or the read of its record, is still pending.
func (f *Fact) unknown() bool { return !f.Known || f.Up && !f.Read && f.Err == nil }

// noReplid2 is the end of the identity of a server that has never been a replica, or has freed its replication backlog
// since.
const noReplid2 = "/0000000000000000000000000000000000000000/-1"

// runID returns the part of an identity that changes with each start of a server.
func runID(identity string) string {
	id, _, _ := strings.Cut(identity, "/")
	return id
}

// promoted reports whether the identity shows that the server was a replica before.
func promoted(identity string) bool { return !strings.HasSuffix(identity, noReplid2) }

// freed reports whether the identity has changed only because the server freed its replication backlog, which also
// resets master_replid2. Such a server has not lost data.
func freed(from, to string) bool { return from != to && to == runID(from)+noReplid2 }

// A Memory counts how often the master at one address may have lost its leases.
type Memory struct {
	identity    string // the identity that was last compared; "" before the first comparison and after Forget
	broke       bool   // whether Fact.breaks was true
	Incarnation uint64 // 1 when the master is up for the first time; 0 before that
}

// Forget records that the master may have lost data even if its identity has not changed.
func (m *Memory) Forget() { m.identity = "" }

// See compares the identity of the master with the previous one, and increases Incarnation if the master may have lost
// data. A restart changes the identity, and is treated as a loss of data even if the data is still there, unless the
// master is durable.
func (m *Memory) See(f *Fact) {
	if breaks := f.breaks(); breaks != m.broke && f.shown() {
		if m.broke = breaks; breaks { // leases that it has granted or extended since may be lost
			m.Incarnation++
		}
	}
	if !f.Up || f.Identity == m.identity {
		return
	}
	switch {
	case m.identity == "": // up for the first time, or for the first time since Forget
		m.Incarnation++
	case freed(m.identity, f.Identity): // the same server
	case f.durable() && !f.Read && f.Err == nil:
		// The record shows whether the master has kept its data, but has not been read yet. See is called again after the
		// read. If the read fails, the data is treated as lost.
		return
	case !f.remembers():
		m.Incarnation++
	}
	m.identity = f.Identity
}
