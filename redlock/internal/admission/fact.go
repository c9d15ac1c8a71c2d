package admission

import (
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A Fact is what one program knows of one master. When the connection ends, the last record stays with Read false: its
// numbers count on.
type Fact struct {
	Settled  bool // it is up, or was found to be down
	Up       bool
	Identity string         // run_id/master_replid2/second_repl_offset of the server that the connection reaches
	Read     bool           // Text was read on this connection
	Text     string         // the admission record, "" if there is none
	Record   scripts.Record // what Text says
	Bad      error          // why Text is no record that this version understands
	Err      error          // why it is down, or why the last step failed
	Asked    uint64         // number of the step that Text is the answer to; steps are numbered as they are sent
	Began    uint64         // number of the last step that was sent when this quarantine was first seen
	Own      int64          // what its clock shows by our reckoning, in microseconds
	Away     time.Duration  // how far that is from the median
	Backlog  time.Duration  // its repl-backlog-ttl; 0: never freed, or not known
	Moved    bool           // its hash slot was on the move, so it may have forgotten, whatever its identity
	Late     time.Duration  // for how long a server that this one has replaced may go on giving locks
	Home     string         // its address, if the operator says that it remembers every write
}

// Learn takes note of the record that the answer to step number asked shows; last is the step that was sent last.
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

// Lose takes note that the master is down, or that another connection to it was made: its record is read anew.
func (f *Fact) Lose() {
	*f = Fact{Settled: true, Text: f.Text, Record: f.Record, Bad: f.Bad, Asked: f.Asked, Began: f.Began, Home: f.Home}
}

// told reports whether a record was ever read that says something.
func (f *Fact) told() bool { return f.Text != "" && f.Bad == nil }

// shown reports whether a record that says something was read on this connection.
func (f *Fact) shown() bool { return f.Read && f.told() }

// own reports whether the record was written for the server that is connected. A server whose backlog was freed since
// then is the same.
func (f *Fact) own() bool {
	return f.shown() && !f.Moved && (f.Record.Identity == f.Identity || freed(f.Record.Identity, f.Identity))
}

// durable reports whether the operator says that the master remembers every write, and it has never been a replica.
func (f *Fact) durable() bool { return f.Home != "" && !promoted(f.Identity) }

// remembers reports whether the master has all that it had: it is a durable one, and its record is there, with the
// address at which we reach it. A record that was copied by replication has another address.
func (f *Fact) remembers() bool {
	return f.durable() && f.shown() && f.Record.Admitted && f.Record.Home == f.Home
}

// unknown reports whether more will be known of the master in a moment.
func (f *Fact) unknown() bool { return !f.Settled || f.Up && !f.Read && f.Err == nil }

// noReplid2 is master_replid2 and second_repl_offset of a server that has never been a replica, or has freed its
// backlog since.
const noReplid2 = "/0000000000000000000000000000000000000000/-1"

// runID is the part of an identity that each start of a server makes anew.
func runID(identity string) string {
	id, _, _ := strings.Cut(identity, "/")
	return id
}

// promoted reports whether the server has been a replica.
func promoted(identity string) bool { return !strings.HasSuffix(identity, noReplid2) }

// freed reports whether the identity changed from one to the other because the server freed its replication backlog,
// which takes master_replid2 with it. That is no sign that it has forgotten anything.
func freed(from, to string) bool { return from != to && to == runID(from)+noReplid2 }

// A Memory counts how often the master at one address may have forgotten what it granted.
type Memory struct {
	identity   string // of the server that was counted last
	Generation uint64 // from 1; 0 until it was up
}

// Forget takes note that the master may have forgotten since, whatever its identity.
func (m *Memory) Forget() { m.identity = "" }

// See compares what is known of the master now with what was known before. Every restart is a new identity, so each one
// counts as forgetting, also with all data, unless the master is a durable one.
func (m *Memory) See(f *Fact) {
	if !f.Up || f.Identity == m.identity {
		return
	}
	switch {
	case m.identity == "": // the first time that it is up
		m.Generation++
	case freed(m.identity, f.Identity): // the same server
	case f.durable() && !f.Read && f.Err == nil:
		// Whether it remembers is in its record, which is being read: See is called again with it. If that fails, it has
		// not shown that it remembers.
		return
	case !f.remembers():
		m.Generation++
	}
	m.identity = f.Identity
}
