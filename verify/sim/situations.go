package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// A situation is rare but important. The runs of a long test must reach each situation, because the checks prove
// nothing about situations that do not occur. An observer detects situations from the events of a run: the scripts that
// masters have executed, and the events of clients.
type situation int

// The situations, in the order of situationNames.
const (
	repaired situation = iota
	repairedInChange
	repairHeld
	repairedForgetful
	repairedQuarantine
	staleBallot
	aheadBallot
	afterOwnRelease
	givenAway
	otherConnection
	executedTwice
	minorityRolledBack
	splitVote
	missingExtension
	abstained
	quarantineShared
	wonWhileAsleep
	closedHolding
	bareQuorum
	handedOn
	exported
	frozenBeforeReading
	turnedInQuarantine
	twoForgetful
	lostLock
	changeFinished
	oldWriter
	wonWithoutMinority
	behindWaiter
	withTicket
	keptPlace
	fairJoin
	keptName
	led
	writerBehindReaders
	readerBehindWriter
	lateReader
	downgraded
	repairRejected
	heldBesideBlocked
	heldBesidePanic
	takenOver
	recalled
	allSlotsHeld
	releaseRequested
	valueShown
	changeAborted
	jumpedBeforeAcquire
	jumpedBetweenVotes
	jumpedBareMajority
	jumpedBareReader
	jumpedInQuarantine
	jumpedInChange
	jumpedFarAhead
	jumpedFarBack
	returnedNear
	returnedFarBack
	wrongImport
	keptByBallot
	keptByOwnClock
	ttlRemoved
	recordWithoutLock
	votedAfterCrash
	restartedOldFile
	jumpedBareSlot
	slotKeptByBallot
	situationCount
)

var situationNames = [situationCount]string{
	"a repair",
	"a repair during a joint change of the masters",
	"a repair that is refused because another lease has the name",
	"a repair of a master that lost its data",
	"a repair in quarantine",
	"a ballot that is refused as stale",
	"a ballot that is refused as ahead",
	"an acquire that arrives after its own release",
	"a release of a lease when the master has already granted another one",
	"a release on another connection than its acquire",
	"a message that is executed twice",
	"a lease on a minority that is rolled back",
	"two leases on minorities that are rolled back within 20 ms",
	"an extension of a lease that the master no longer has",
	"an acquire that a master in quarantine abstains from",
	"a quarantine that one client begins and another ends",
	"a lock that another client wins while the holder's machine sleeps",
	"a Locker that is closed while it holds a lock",
	"a lock that is won on the bare quorum",
	"a lease that is handed off locally",
	"a lock that is exported to another client",
	"a freeze just before a reply is read",
	"a wall clock that is set during a quarantine",
	"two masters that lose their data within a second while a lock is held",
	"a lock that is lost",
	"a change of the masters that is finished under load",
	"a writer with an old token that is refused",
	"a lock that is won while a minority is cut off forever",
	"a free name that a master reserves for the first waiter",
	"a lock that is granted to a waiter",
	"a rollback that keeps the waiter's place",
	"a fair call that joins the queue before another call of its client releases the lock",
	"a name that the masters reserve after its Unlock",
	"a leadership",
	"a writer that waits for readers",
	"a reader that waits behind a writer while others read",
	"a reader's acquire that arrives after its own release",
	"a writer's lock that is downgraded to a reader's lock",
	"a repair of a master that has lost its data since the round began",
	"a lock of a client whose callback blocks",
	"a lock of a client whose callbacks panic",
	"an idle lock that its client takes over",
	"a message about a lease that its client receives",
	"as many holders as there are slots",
	"a request to release a lock",
	"a value that an inspection shows",
	"a change of the masters that is cancelled under load",
	"a clock that jumps just before its master executes an acquire",
	"a clock that jumps between two votes of a round",
	"a clock that jumps while its master belongs to the bare majority that has a lease",
	"a clock that jumps while its master belongs to the bare majority that has a reader's lease",
	"a clock that jumps during the quarantine of its master",
	"a clock that jumps during a joint change of the masters",
	"a clock that jumps forward by more than the window",
	"a clock that jumps back by more than the window",
	"a clock that returns after it was wrong by less than the window",
	"a clock that returns after it was behind by more than the window",
	"an import by a master whose clock is wrong",
	"a lease that has expired by the clock of its master, but not by the ballot of an acquire",
	"a lease that has expired by the ballot of an acquire, but not by the clock of its master",
	"a TTL on an admission record that a client removes",
	"an admission record that comes back without the lock that its master had",
	"a grant of a durable master that has restarted, within a quarantine",
	"a durable master that restarts from an old file while a lock is held",
	"a clock that jumps while its master belongs to the bare majority that has a slot",
	"a slot that has expired by the clock of its master, but not by the ballot of an acquire",
}

// A grantSeen records the history of one lease.
type grantSeen struct {
	on       map[int8]*conn // by master: the connection on which the lease was granted
	over     map[int8]bool  // by master: the release of the lease has been executed
	won      bool
	tokens   map[int64]bool
	forgot   map[int8]bool // by master: the master has lost its data since the grant
	granted  time.Duration // when a master first granted the lease
	released time.Duration // when the lease was first rolled back from a minority
}

// An observer detects the situations of a run.
type observer struct {
	reached    [situationCount]bool
	grants     map[string]*grantSeen
	last       map[int8]string // by master: the lease that the master last granted
	quarantine map[int8]int8   // by master: the client that started the master's quarantine
	holding    map[int8]int    // by client: number of locks that the client's workers use
	asleep     map[int8]bool   // by client: the client's machine sleeps while a lock is held
	epochs     map[int8]int64  // by client: the epoch of the client's configuration
	rolledBack time.Duration   // when a lease was last rolled back from a minority
	forgot     time.Duration   // when a master last lost its data while a lock was held
	apart      bool            // a minority of the masters is partitioned away forever
}

func newObserver() observer {
	return observer{grants: map[string]*grantSeen{}, last: map[int8]string{}, quarantine: map[int8]int8{},
		holding: map[int8]int{}, asleep: map[int8]bool{}, epochs: map[int8]int64{},
		rolledBack: -time.Hour, forgot: -time.Hour}
}

func (o *observer) grant(id string) *grantSeen {
	g := o.grants[id]
	if g == nil {
		g = &grantSeen{on: map[int8]*conn{}, over: map[int8]bool{}, tokens: map[int64]bool{},
			forgot: map[int8]bool{}}
		o.grants[id] = g
	}
	return g
}

// sawMessage records a script that a master has executed.
func (o *observer) sawMessage(e *entry, m *message, n *conn) {
	kind := quorum.Outcome(e.code)
	if e.code < 0 {
		return
	}
	switch e.what {
	case scripts.Acquire.Name:
		o.sawAcquire(e, m, n, kind)
	case repairs:
		o.sawRepair(e, n, kind)
	case scripts.Extend.Name:
		o.reach(missingExtension, kind == quorum.Missing)
	case scripts.Release.Name:
		o.reach(keptPlace, word(m.words, wordRank) != "")
		o.reach(keptName, e.code == 1 && !slices.Contains([]string{"", "0"}, word(m.words, wordKeep)))
		o.sawRelease(e, n)
	case joins:
		o.reach(fairJoin, true)
	case scripts.Admit.Name:
		switch scripts.AdmitStep(e.name) {
		case scripts.AdmitStart:
			o.quarantine[e.master] = e.client
		case scripts.AdmitEnd:
			by, was := o.quarantine[e.master]
			o.reach(quarantineShared, was && by != e.client)
			delete(o.quarantine, e.master)
		}
	}
}

func (o *observer) reach(s situation, yes bool) {
	if yes {
		o.reached[s] = true
	}
}

func (o *observer) sawAcquire(e *entry, m *message, n *conn, kind quorum.Outcome) {
	g := o.grant(e.name)
	o.reach(behindWaiter, m.free)
	o.reach(withTicket, kind == quorum.Granted && len(m.words) > wordWaiter)
	o.reach(staleBallot, kind == quorum.Stale)
	o.reach(aheadBallot, kind == quorum.Ahead)
	o.reach(abstained, kind == quorum.Abstained)
	o.reach(afterOwnRelease, g.over[e.master])
	o.sawShares(m, kind, g.over[e.master])
	if kind == quorum.Granted {
		if len(g.on) == 0 {
			g.granted = e.at
		}
		g.on[e.master] = n
		o.last[e.master] = e.name
	}
}

func (o *observer) sawRepair(e *entry, n *conn, kind quorum.Outcome) {
	g := o.grant(e.name)
	o.reach(repairHeld, kind == quorum.Held)
	o.reach(repairRejected, kind == quorum.Abstained)
	if kind != quorum.Granted {
		return
	}
	o.reach(repaired, true)
	_, quarantine := o.quarantine[e.master]
	o.reach(repairedQuarantine, quarantine)
	o.reach(repairedForgetful, g.forgot[e.master])
	for _, epoch := range o.epochs {
		o.reach(repairedInChange, epoch == 1)
	}
	g.on[e.master] = n
	o.last[e.master] = e.name
}

func (o *observer) sawRelease(e *entry, n *conn) {
	g := o.grants[e.name]
	if g == nil {
		return
	}
	if over := g.on[e.master]; over != nil {
		o.reach(otherConnection, over != n)
		o.reach(givenAway, e.code == 0 && o.last[e.master] != e.name)
	}
	if !g.won && len(g.on) > 0 && g.released == 0 {
		g.released = e.at
		o.reach(minorityRolledBack, true)
		o.reach(splitVote, e.at-o.rolledBack < 20*time.Millisecond)
		o.rolledBack = e.at
	}
	g.over[e.master] = true
}

// saw records an event that is not a message. It recognizes events by the words of the transcript.
func (o *observer) saw(e *entry, masters int) {
	switch {
	case e.what == "holds":
		o.holding[e.client]++
		o.reach(wonWithoutMinority, o.apart)
	case e.what == "has held":
		o.holding[e.client]--
	case e.what == "has won":
		o.sawWin(e, masters)
	case e.what == "has led":
		o.reach(led, true)
	case e.what == "has lost":
		o.reach(lostLock, true)
	case strings.HasPrefix(e.what, "exports"):
		o.reach(exported, true)
	case e.what == "sleeps for":
		o.asleep[e.client] = o.holding[e.client] > 0
	case e.what == "wakes up":
		o.asleep[e.client] = false
	case strings.HasPrefix(e.what, "closes its Locker"):
		o.reach(closedHolding, o.holding[e.client] > 0)
	case strings.HasPrefix(e.what, "sets its wall clock"):
		o.reach(turnedInQuarantine, len(o.quarantine) > 0)
	case e.what == "uses epoch":
		o.epochs[e.client] = e.n
	case e.what == "FinishChange is done":
		o.reach(changeFinished, true)
	case e.what == "AbortChange is done":
		o.reach(changeAborted, true)
	case e.what == "has a message executed again":
		o.reach(executedTwice, true)
	case e.what == "is cut off forever":
		o.apart = true
	case e.what == "loses all its keys", strings.Contains(e.what, "without its memory"):
		o.sawForget(e)
	}
}

func (o *observer) sawWin(e *entry, masters int) {
	g := o.grant(e.name)
	o.reach(handedOn, g.won && !g.tokens[e.n])
	g.won = true
	g.tokens[e.n] = true
	o.reach(bareQuorum, masters > 2 && len(g.on) == masters/2+1)
	for client, asleep := range o.asleep {
		o.reach(wonWhileAsleep, asleep && client != e.client)
	}
}

func (o *observer) sawForget(e *entry) {
	for _, g := range o.grants {
		if g.on[e.master] != nil && !g.over[e.master] {
			g.forgot[e.master] = true
		}
	}
	held := 0
	for _, n := range o.holding {
		held += n
	}
	if held > 0 {
		o.reach(twoForgetful, e.at-o.forgot < time.Second)
		o.forgot = e.at
	}
}
