package sim

import (
	"strconv"

	"github.com/redlock-go/redlock/internal/scripts"
)

// Where the words of a script are, counted from 0 after the keys; a test holds them against what the library encodes.
const (
	wordID, wordFirst, wordLast, wordMode, wordWaiter = 1, 3, 4, 5, 6 // of an acquire; an extension has its id there, too

	wordEndGrant, wordEndBallot, wordKeep, wordEndWaiter, wordRank = 0, 1, 2, 3, 4 // of a release

	wordGrants = 6 // all further grants of a release are from there on

	wordStep = 0 // of a step of an admission
)

// repairs is the name of an acquire that gives a grant back, or over to another program.
const repairs = "repair or import"

// What is told of a release that ends no grant.
const (
	leaves = "leave"
	joins  = "join"
)

// A message is what a script has been asked and has answered.
type message struct {
	script *scripts.Script
	words  []string
	what   string
	id, by string // by: the grant that refuses
	ballot int64
	code   int64    // below 0: an error
	free   bool     // the name is free, and another waiter is first
	grants []string // that a release ends
}

// modeOf returns the mode of an acquire; one without a ticket leaves it out.
func modeOf(words []string) string {
	if mode := word(words, wordMode); mode != "" {
		return mode
	}
	return "acquire"
}

// read reads what a master was asked, and its answer.
func read(one *scripts.Script, words []string, reply any) message {
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

// word is one of the words of a script; "" where it was left out.
func word(words []string, i int) string {
	if i >= len(words) {
		return ""
	}
	return words[i]
}

// heard takes note of a script that a master has executed, and holds it against what was executed before: a grant whose
// end a master has executed must never be on it again.
func (w *world) heard(n *conn, s *server, m message) {
	switch m.script {
	case scripts.Acquire, scripts.SharedAcquire:
		role, _ := scripts.ShareOf(m.id)
		granted, asks := m.code == int64(scripts.Granted), modeOf(m.words) == "acquire"
		switch {
		case !granted:
			s.no[m.id] = s.no[m.id] || asks
		case asks && role == scripts.Reader && s.had[m.id]: // a reader's ask that came twice: it may live to its TTL
			w.loose = true
		case asks && s.no[m.id]: // it is executed once more, so that nobody undoes it: it lives to its TTL
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

// A block is what lies between two ballots, with both.
type block struct{ first, last int64 }

// ask takes note of what a client sends, before anything happens to it. A grant is asked for once: what is asked
// for again is a new grant, since a release of the old one may still be on its way. An import is sent again by the
// same id, and then by ballots above those of the rounds before, else the answer to one could be taken for that to
// another. A script that a master did not know is sent once more with its text; that is no other round.
func (l *link) ask(c command) {
	if c[0] != "EVALSHA" || c[1] != scripts.Acquire.SHA && c[1] != scripts.SharedAcquire.SHA {
		return
	}
	keys, err := strconv.Atoi(c[2])
	if err != nil {
		return // the master says so
	}
	words := c[3+keys:]
	id, now, mode := words[wordID], block{number(words[wordFirst]), number(words[wordLast])}, modeOf(words)
	if mode == "repair" {
		return // it prolongs nothing that anybody trusts, and one that was refused as ahead may come again
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
