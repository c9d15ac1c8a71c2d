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
	wordID, wordTTL, wordFirst, wordLast, wordMode, wordWaiter = 1, 2, 3, 4, 6, 7

	wordRepairPrevious = 7 // of a repair: the lease that the repair may replace

	wordEndGrant, wordEndBallot, wordKeep, wordEndWaiter, wordRank = 0, 1, 2, 4, 5 // of a release

	wordGrants = 7 // further leases of a release begin at this position

	wordStep = 0 // of an admission: its step
)

// repairs is the description of acquires that restore a lease on a master, or transfer a lease to another client.
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
	id, by string // by is the lease because of which the master refuses
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
	one = plainOf(one)
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

// heard records a script that master s has executed. It also checks that the master never has a lease again after it
// has executed the release of that lease.
func (w *simulation) heard(n *conn, s *server, m message) {
	switch m.script {
	case scripts.Acquire, scripts.SharedAcquire:
		role, _ := scripts.ShareOf(m.id)
		granted, asks := m.code == int64(quorum.Granted), modeOf(m.words) == "acquire"
		switch {
		case !granted:
			s.no[m.id] = s.no[m.id] || asks
		case asks && role == scripts.Reader && s.had[m.id]: // the share of a duplicated acquire may remain for its TTL
			w.loose = true
		case asks && s.no[m.id]: // no release follows a duplicate of a refused acquire, so the lease remains for its TTL
			w.loose = true
		case s.ended[m.id] && !w.leapt:
			w.problemLocked("lease %s is on master %d again, after its end: the master has executed the release", m.id, s.index)
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

// A block is the range of ballots from first to last, inclusive.
type block struct{ first, last int64 }

// ask checks and records an acquire when the client sends it, before the network delays or drops the message. Each
// acquire must be for a new lease, since a release of the old lease may still be in flight. An import is sent again
// with the same id, but its ballots must not overlap those of earlier rounds, because the client could otherwise
// mistake the reply to one round for the reply to another. ask ignores EVAL: after NOSCRIPT, the client sends the
// acquire of the same round again with the text of the script.
func (l *link) ask(c command) {
	if c[0] != "EVALSHA" || !acquires(c[1]) {
		return
	}
	keys, err := strconv.Atoi(c[2])
	if err != nil {
		return // the master reports the error
	}
	words := c[3+keys:]
	id, now, mode := words[wordID], block{number(words[wordFirst]), number(words[wordLast])}, modeOf(words)
	if mode == "repair" {
		return // no client relies on a repair, and a repair may be sent again if its ballot was ahead
	}
	before, again := l.asked[id]
	switch {
	case again && mode == "acquire":
		l.w.problemLocked("lease %s is requested from master %d once more, want a new lease per acquire", id, l.s.index)
	case again && now.first <= before.last && now.last >= before.first:
		l.w.problemLocked("the import of %s on master %d has the ballots %v, which overlap the earlier ballots %v", id,
			l.s.index, now, before)
	case !again:
		before = now
	}
	if l.asked == nil {
		l.asked = map[string]block{}
	}
	l.asked[id] = block{min(before.first, now.first), max(before.last, now.last)}
}
