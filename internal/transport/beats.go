package transport

import (
	"slices"
	"sync"
	"time"
)

// beats lets one heartbeat count for all sessions with the same server. In a cluster the Transport of each bucket has a
// session with the node, and all sessions of an idle client together should cost the node no more than one.
//
// A heartbeat shows that the server is still the same, is fit, and answers. That holds for all sessions: the server
// process of a connection does not change. It does not show that the connection of another session still works. So the
// sessions send in turn, and one of them, the leader, decides when. Each connection is then used regularly, and a
// broken one is replaced.
type beats struct {
	mu       sync.Mutex            // held while heartbeats are sent or judged; held before watchers.mu and Pipe.mu
	sessions map[string][]*session // those that are open, by the run id of the server
}

// join adds a session. b.mu is held.
func (b *beats) join(s *session) {
	if b.sessions == nil {
		b.sessions = make(map[string][]*session)
	}
	b.sessions[s.info.RunID] = append(b.sessions[s.info.RunID], s)
}

// leave removes a session. When it has returned, no other session judges a heartbeat for s. If s has not finished the
// heartbeat of a leader, another session sends it again: otherwise the leader would get none for two intervals.
func (b *beats) leave(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	leader := s.leader
	s.leader = nil // do not keep another ended session in memory
	id := s.info.RunID
	rest := slices.DeleteFunc(b.sessions[id], func(other *session) bool { return other == s })
	if len(rest) == 0 {
		delete(b.sessions, id)
	} else {
		b.sessions[id] = rest
	}
	//mutant:heartbeat-of-ended 2= false
	if s.beating && leader != nil && leader != s && leader.open() && leader.lastInfo.Load().Steady() < s.sent.Steady() {
		b.next(leader).send("", leader)
	}
}

// covered returns how long s need not lead. A heartbeat that another session has led counts for one interval, and the
// next one has a quarter of the timeout to arrive. b.mu is held.
func (s *session) covered() time.Duration {
	if !s.byOther {
		return 0
	}
	cfg := &s.m.cfg
	//mutant:shared-heartbeat-lasts = cfg.heartbeat
	return cfg.heartbeat + cfg.timeout/4 - cfg.clock.Now().Sub(*s.lastInfo.Load())
}

// next returns the session whose turn it is to send a heartbeat for s: the one that has sent none for the longest time,
// of those whose heartbeats count for s. b.mu is held.
func (b *beats) next(s *session) *session {
	next := s
	if !s.open() { // no other session's heartbeat is judged for it
		return s
	}
	for _, other := range b.sessions[s.info.RunID] {
		counts := s.digest != "" && other.digest == s.digest || other.m.cfg.tag == "" && s.m.cfg.tag == ""
		if counts && !other.beating && other.sent.Steady() < next.sent.Steady() {
			next = other
		}
	}
	//mutant:heartbeats-in-turn = s
	return next
}

// spread lets the other sessions with the server judge a heartbeat of s. In a cluster, a session whose node has changed
// since it last read CLUSTER NODES sends a heartbeat of its own. b.mu is held.
func (b *beats) spread(s *session, h heard) {
	for _, other := range b.sessions[s.info.RunID] {
		switch {
		case other == s:
		case other.m.cfg.tag != "" && h.digest() == "": // its heartbeats are as well without one
		case !other.knows(h):
			other.send(h.digest(), s.leader)
		default:
			if other.byOther = other != s.leader; s.knows(h) {
				other.stop = s.stop
			}
			other.judge(h)
		}
	}
}
