package sim

import (
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/master"
	"github.com/redlock-go/redlock/internal/scripts"
)

// Where the words of a script are, counted from 0 after the keys; a test holds them against what the library encodes.
const (
	wordID, wordBallot, wordRest, wordLast = 1, 3, 4, 5 // of an acquire; an extension and a release have their id there, too
	wordEndBallot, wordMore                = 2, 4       // of a release: from wordMore on there are more ids, or waiters
	wordStep                               = 0          // of a step of an admission
)

// endsOf are the ids, or waiters, of a release.
func endsOf(words []string) []string {
	ids := words[wordID : wordID+1 : wordID+1]
	switch {
	case len(words) > wordMore:
		return append(ids, words[wordMore:]...)
	case ids[0] == "":
		return nil
	}
	return ids
}

// modeOf is the mode of an acquire. It is among the words only where it is not the usual one.
func modeOf(words []string) scripts.Mode {
	if len(words) > wordRest {
		if rest := strings.Fields(words[wordRest]); len(rest) > 2 {
			return scripts.Mode(rest[2])
		}
	}
	return scripts.ModeAcquire
}

// blockOf is what an acquire has as its ballots: mostly one.
func blockOf(words []string) block {
	b := block{number(words[wordBallot]), number(words[wordBallot])}
	if len(words) > wordLast {
		b.last = number(words[wordLast])
	}
	return b
}

// given takes note of a hold that a release has written for a waiter. It must not be one whose end was executed here.
func (w *world) given(s *server, m master.Message) {
	n, ok := prefix.ParseNotice(m.Payload)
	if !ok || n.Kind != scripts.Given {
		return
	}
	w.grants++
	w.message(-1, s.index, "writes", n.Hold, "", n.Ballot, int64(scripts.Granted))
	if s.ended[n.Hold] && !w.leapt {
		w.problemLocked("%s was written on master %d for its waiter, after its end was executed there", n.Hold, s.index)
	}
}

// heard takes note of the scripts that a command has run.
func (w *world) heard(n *conn, s *server, one *scripts.Script, keys, words []string, reply any) {
	parts := master.Parts(one, keys, words)
	replies, _ := reply.([]any)
	for i, p := range parts {
		if one == scripts.Many && len(replies) == len(parts) {
			reply = replies[i]
		}
		w.heardOne(n, s, p.Script, p.Args, reply)
	}
}

// heardOne takes note of a script that a master has executed, and holds it against what was executed before: a hold whose
// end a master has executed must never be on it again.
func (w *world) heardOne(n *conn, s *server, one *scripts.Script, words []string, reply any) {
	code, granted := reply.(int64)
	by := ""
	if list, ok := reply.([]any); ok {
		if code, _ = list[0].(int64); code == int64(scripts.Held) && len(list) > 4 {
			by, _ = list[4].(string)
		}
	} else if !granted {
		code = -1
	}
	what, id, ballot := one.Name, "", int64(0)
	switch one {
	case scripts.Acquire:
		id, ballot = words[wordID], number(words[wordBallot])
		if modeOf(words) != scripts.ModeAcquire {
			what = "heal or import"
		}
		if granted && s.ended[id] && !w.leapt {
			w.problemLocked("%s is on master %d again, after its end was executed there", id, s.index)
		}
	case scripts.Extend:
		id = words[wordID]
	case scripts.Release:
		ballot = number(words[wordEndBallot])
		for i, one := range endsOf(words) {
			if i == 0 {
				id = one
			}
			if granted && !scripts.IsReservation(one) {
				s.ended[one] = true
			}
		}
	case scripts.Admit:
		id = words[wordStep]
	}
	w.message(n.l.c.index, s.index, what, id, by, ballot, code)
}

// A block is what lies between two ballots, with both.
type block struct{ first, last int64 }

// ask takes note of what a client sends, before anything happens to it: each round of an acquire must have ballots above those
// of the rounds before, or below all of them. Else the answer to one could be taken for that to another, which was given
// later. Heals prolong nothing that anybody trusts; one that was refused as ahead may come again. A script that a master did
// not know is sent once more with its text; that is no other round.
func (l *link) ask(c command) {
	if c[0] != "EVALSHA" || c[1] != scripts.Acquire.SHA && c[1] != scripts.Many.SHA {
		return
	}
	keys, err := strconv.Atoi(c[2])
	if err != nil {
		return // the master says so
	}
	one := scripts.Acquire
	if c[1] == scripts.Many.SHA {
		one = scripts.Many
	}
	for _, p := range master.Parts(one, c[3:3+keys], c[3+keys:]) {
		if p.Script == scripts.Acquire && modeOf(p.Args) == scripts.ModeAcquire {
			l.askOne(p.Args)
		}
	}
}

func (l *link) askOne(words []string) {
	id, now := words[wordID], blockOf(words)
	before, again := l.asked[id]
	if again && now.first <= before.last && now.last >= before.first {
		l.w.problemLocked("%s asks master %d by the ballots %v, after %v", id, l.s.index, now, before)
	}
	if !again {
		before = now
	}
	if l.asked == nil {
		l.asked = map[string]block{}
	}
	l.asked[id] = block{min(before.first, now.first), max(before.last, now.last)}
}
