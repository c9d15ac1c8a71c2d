package sim

import (
	"strconv"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// Positions of the arguments of scripts, counted from 0 after the keys. TestWordPositions compares them with the
// library's encoding.
const (
	// Of an acquire. An extension has its id and its TTL at the same positions.
	wordID, wordTTL, wordFirst, wordLast, wordMode, wordWaiter = 1, 2, 3, 4, 5, 6

	wordRepairPrevious = 8 // of a repair: the lease that the repair replaces

	wordEndGrant, wordEndBallot, wordKeep, wordEndWaiter, wordRank = 0, 1, 2, 3, 4 // of a release

	wordGrants = 6 // further leases of a release begin at this position

	wordStep = 0 // of an admission: its step
)

// repairs describes acquires that restore a lease, or transfer it to another client.
const repairs = "repair or import"

// Descriptions of a release that contains no lease.
const (
	leaves = "leave"
	joins  = "join"
)

// A message is a call of a script with its reply.
type message struct {
	script *frame.Script
	words  []string
	what   string
	id, by string // by is the lease that causes the refusal
	ballot int64
	code   int64    // negative for an error
	free   bool     // the name is free, but another waiter is first
	grants []string // the leases that a release ends
}

// modeOf returns the mode of an acquire. The mode may be omitted if the acquire has no ticket.
func modeOf(words []string) string {
	if mode := word(words, wordMode); mode != "" {
		return mode
	}
	return "acquire"
}

// read decodes a call of a script and its reply.
func read(one *frame.Script, words []string, reply any) message {
	m := message{script: one, words: words, what: one.Name, code: -1}
	switch v := reply.(type) {
	case int64:
		m.code = v
	case []any:
		m.code, _ = v[0].(int64)
	}
	switch one {
	case scripts.Acquire, scripts.SharedAcquire:
		m.what = scripts.Acquire.Name
		m.id, m.ballot = words[wordID], number(words[wordFirst])
		if modeOf(words) != "acquire" {
			m.what = repairs
		}
		if vote, err := scripts.DecodeVote(reply); err == nil {
			m.by, m.free = vote.Holder, vote.Free
		}
	case scripts.Extend, scripts.SharedExtend:
		m.what, m.id = scripts.Extend.Name, words[wordID]
	case scripts.Release, scripts.SharedRelease:
		m.what, m.ballot = scripts.Release.Name, number(word(words, wordEndBallot))
		if words[wordEndGrant] != "" {
			m.grants = append(words[:1:1], words[min(wordGrants, len(words)):]...)
		}
		switch {
		case len(m.grants) > 0:
			m.id = m.grants[0]
		case word(words, wordRank) == "":
			m.what, m.id = leaves, words[wordEndWaiter]
		default:
			m.what, m.id = joins, words[wordEndWaiter]
		}
	case scripts.Admit:
		m.id = words[wordStep]
	}
	return m
}

// word returns one argument of a script, or "" if the argument was omitted.
func word(words []string, i int) string {
	if i >= len(words) {
		return ""
	}
	return words[i]
}

// heard records a script that a master has executed, and checks it against earlier scripts: after a master has
// executed the release of a lease, it must never have the lease again.
func (w *simulation) heard(n *conn, s *server, m message) {
	switch m.script {
	case scripts.Acquire, scripts.SharedAcquire:
		role, _ := scripts.ShareOf(m.id)
		granted, asks := m.code == int64(quorum.Granted), modeOf(m.words) == "acquire"
		switch {
		case !granted:
			s.no[m.id] = s.no[m.id] || asks
		case asks && role == scripts.Reader && s.had[m.id]: // a duplicated acquire of a reader may remain until its TTL
			w.loose = true
		case asks && s.no[m.id]: // a duplicate of a refused acquire is not undone, so it remains until its TTL
			w.loose = true
		case s.ended[m.id] && !w.leapt:
			w.problemLocked("%s is on master %d again, after its end was executed there", m.id, s.index)
		}
		s.had[m.id] = s.had[m.id] || granted && asks
	case scripts.Release, scripts.SharedRelease:
		if m.code >= 0 {
			for _, id := range m.grants {
				s.ended[id] = true
			}
		}
	}
	e := entry{at: w.since(w.start), client: int8(n.l.c.index), master: int8(s.index), what: m.what, name: m.id, by: m.by,
		n: m.ballot, code: m.code, message: true}
	w.log = append(w.log, e)
	w.seen.sawMessage(&e, &m, n)
}

// A block is a range of ballots, inclusive.
type block struct{ first, last int64 }

// ask records an acquire that a client sends, before anything can happen to the message. Each acquire must be for a
// new lease, since a release of the old lease may still be in flight. An import is sent again with the same id, but
// its ballots must be above those of earlier rounds, because the reply to one round could otherwise be taken for the
// reply to another. A script that a master did not know is sent again with its text; that does not start a new
// round.
func (l *link) ask(c command) {
	if c[0] != "EVALSHA" || c[1] != scripts.Acquire.SHA && c[1] != scripts.SharedAcquire.SHA {
		return
	}
	keys, err := strconv.Atoi(c[2])
	if err != nil {
		return // the master reports the error
	}
	words := c[3+keys:]
	id, now, mode := words[wordID], block{number(words[wordFirst]), number(words[wordLast])}, modeOf(words)
	if mode == "repair" {
		return // it extends nothing that a client relies on, and may be retried if its ballot was ahead
	}
	before, again := l.asked[id]
	switch {
	case again && mode == "acquire":
		l.w.problemLocked("%s is asked of master %d once more", id, l.s.index)
	case again && now.first <= before.last && now.last >= before.first:
		l.w.problemLocked("%s asks master %d by the ballots %v, after %v", id, l.s.index, now, before)
	case !again:
		before = now
	}
	if l.asked == nil {
		l.asked = map[string]block{}
	}
	l.asked[id] = block{min(before.first, now.first), max(before.last, now.last)}
}
