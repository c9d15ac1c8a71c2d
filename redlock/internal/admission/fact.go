package admission

import (
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A Clock is the knowledge of one client about the clock of a master.
type Clock struct {
	Own int64         // an estimate, in microseconds
	Off time.Duration // how far Own is ahead of the median; negative if it is behind
}

// A Fact is the knowledge of one client about one master. When the connection ends, Read becomes false, and the last
// record is kept, because its numbers are still used.
type Fact struct {
	Clock
	Settled  bool // up, or known to be down
	Up       bool
	Identity string         // run_id/master_replid2/second_repl_offset of the server that the connection reaches
	Read     bool           // Text was read on this connection
	Text     string         // the admission record, "" if there is none
	Record   scripts.Record // parsed Text
	Bad      error          // why Text is not a record of this version
	Err      error          // why it is down, or why the last step failed
	Asked    uint64         // number of the step whose reply Text is; steps are numbered in the order of sending
	Began    uint64         // number of the last step sent before the present quarantine was first seen
	Lost     time.Duration  // how long it has been down or unknown while this client observed it; 0 if it is up
	Backlog  time.Duration  // its repl-backlog-ttl; 0: never freed, or unknown
	Moved    bool           // its hash slot was being moved, so it may have lost data, regardless of its identity
	Late     time.Duration  // how long the server that this one has replaced may continue to grant locks
	Home     string         // its address, if the operator says that it persists every write
}

// Learn parses the record that a master returned in reply to step number asked, and stores it in f. last is the
// number of the last step that was sent.
func (f *Fact) Learn(text string, asked, last uint64) {
	before, was := f.Record, f.Read
	f.Read, f.Text, f.Asked = true, text, asked
	f.Record, f.Bad = scripts.Record{}, nil
	if text != "" {
		f.Record, f.Bad = scripts.ParseRecord(text)
	}
	if !was || before.Identity != f.Record.Identity || before.Since != f.Record.Since {
		f.Began = last
	}
}

// Lose marks the master as down or reconnected, so that its record is read again.
func (f *Fact) Lose() {
	*f = Fact{
		Settled: true, Text: f.Text, Record: f.Record, Bad: f.Bad, Asked: f.Asked, Began: f.Began, Lost: f.Lost, Home: f.Home,
	}
}

// hasRecord reports whether a valid record was ever read.
func (f *Fact) hasRecord() bool { return f.Text != "" && f.Bad == nil }

// shown reports whether a valid record was read on this connection.
func (f *Fact) shown() bool { return f.Read && f.hasRecord() }

// own reports whether the record was written for the server that is connected. A server that has only freed its
// backlog since then is still the same server.
func (f *Fact) own() bool {
	//mutant:second-offset 3= strings.HasPrefix(f.Identity, strings.TrimRight(f.Record.Identity, "0123456789"))
	//mutant:identity-beyond-run-id 3= runID(f.Record.Identity) == runID(f.Identity)
	return f.shown() && !f.Moved && (f.Record.Identity == f.Identity || freed(f.Record.Identity, f.Identity))
}

// durable reports whether the operator says that the master persists every write, and it has never been a replica.
func (f *Fact) durable() bool { return f.Home != "" && !promoted(f.Identity) }

// remembers reports whether the master has kept all its data. It has if it is durable, and its record admits it and
// contains the address at which this client reaches it. A record that was copied by replication contains another
// address.
func (f *Fact) remembers() bool {
	return f.durable() && f.shown() && f.Record.Admitted && f.Record.Home == f.Home
}

// unknown reports whether more will soon be known about the master.
func (f *Fact) unknown() bool { return !f.Settled || f.Up && !f.Read && f.Err == nil }

// noReplid2 is the master_replid2 and second_repl_offset of a server that has never been a replica, or has freed its
// backlog since.
const noReplid2 = "/0000000000000000000000000000000000000000/-1"

// runID returns the part of an identity that changes with each start of a server.
func runID(identity string) string {
	id, _, _ := strings.Cut(identity, "/")
	return id
}

// promoted reports whether the server has been a replica.
func promoted(identity string) bool { return !strings.HasSuffix(identity, noReplid2) }

// freed reports whether the identity has changed only because the server freed its replication backlog, which also
// resets master_replid2. Such a server has not lost data.
func freed(from, to string) bool { return from != to && to == runID(from)+noReplid2 }

// A Memory counts how often the master at one address may have lost its leases.
type Memory struct {
	identity    string // of the server that was counted last
	Incarnation uint64 // from 1; 0 until it has been up
}

// Forget records that the master may have lost data, even if its identity stays the same.
func (m *Memory) Forget() { m.identity = "" }

// See compares the master with its previous state, and increases Incarnation if it may have lost data. A restart
// changes the identity, and is treated as a loss of data even if the data is still there, unless the master is a
// durable one.
func (m *Memory) See(f *Fact) {
	if !f.Up || f.Identity == m.identity {
		return
	}
	switch {
	case m.identity == "": // up for the first time, or since Forget
		m.Incarnation++
	case freed(m.identity, f.Identity): // the same server
	case f.durable() && !f.Read && f.Err == nil:
		// Its record, which is being read, will show whether the master has kept its data: then See is called again. If the
		// record cannot be read, the data is treated as lost.
		return
	case !f.remembers():
		m.Incarnation++
	}
	m.identity = f.Identity
}
