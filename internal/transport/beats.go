package transport

import (
	"slices"
	"sync"
	"time"
)

// beats shares one heartbeat among all sessions with the same server. In a cluster the Transport of each bucket has a
// session with the node, and all sessions of an idle client together should not cost the node more than a single
// session.
//
// A heartbeat shows that the server is still the same, is fit, and answers. This is true for all sessions, because
// the server process at the other end of a connection does not change. But a heartbeat does not show that the
// connection of another session still works. So the sessions send in turn, and one of them, the leader, decides when.
// Each connection is then used regularly, and a broken one is replaced.
type beats struct {
	mu       sync.Mutex // held while heartbeats are sent or judged; held before watchers.mu and Pipe.mu
	sessions []*session // the open sessions
}

// leave removes a session. When leave has returned, no heartbeat of another session is judged for s. If s has not
// finished a heartbeat that a leader decided to send, another session sends it again, because otherwise the leader
// would get no heartbeat for two intervals.
func (b *beats) leave(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	leader := s.leader
	s.leader = nil // do not keep another ended session in memory
	b.sessions = slices.DeleteFunc(b.sessions, func(other *session) bool { return other == s })
	//mutant:heartbeat-of-ended 2= false
	if s.beating && leader != nil && leader != s && leader.open() && leader.lastInfo.Load().Steady() < s.sent.Steady() {
		b.next(leader).send("", leader)
	}
}

// covered returns how long s need not decide to send a heartbeat. A heartbeat led by another session is enough for
// one interval, and the next one may take a quarter of the timeout to arrive. The caller must hold beats.mu.
func (s *session) covered() time.Duration {
	if !s.byOther {
		return 0
	}
	cfg := &s.m.cfg
	//mutant:shared-heartbeat-lasts = cfg.heartbeat
	return cfg.heartbeat + cfg.timeout/4 - s.age()
}

// next returns the session whose turn it is to send a heartbeat for s: of the sessions whose heartbeats are also
// valid for s, the one that has not sent a heartbeat for the longest time. The caller must hold b.mu.
func (b *beats) next(s *session) *session {
	next := s
	if !s.open() { // the heartbeats of other sessions are not judged for s
		return s
	}
	for _, other := range b.sessions {
		counts := s.digest != "" && other.digest == s.digest || other.m.cfg.tag == "" && s.m.cfg.tag == ""
		if counts && other.info.RunID == s.info.RunID && !other.beating && other.sent.Steady() < next.sent.Steady() {
			next = other
		}
	}
	//mutant:heartbeats-in-turn = s
	return next
}

// spread lets the other sessions with the server judge a heartbeat of s. In a cluster, a session sends its own
// heartbeat if the node has changed since that session last read CLUSTER NODES. The caller must hold b.mu.
func (b *beats) spread(s *session, h heard) {
	for _, other := range b.sessions {
		switch {
		case other == s || other.info.RunID != s.info.RunID:
		case other.m.cfg.tag != "" && h.digest() == "": // without digests, each session must send its own heartbeats
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
