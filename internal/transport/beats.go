package transport

import (
	"slices"
	"sync"
	"time"
)

// beats makes the sessions with one server share heartbeats. In a cluster, the Transport of each bucket has its own
// session with the node that owns the bucket. All sessions of an idle client with a node should together cost the node
// no more than one session.
//
// A heartbeat shows that the server is still the same, is fit, and answers. The result is valid for all sessions with
// the server, because a connection always leads to the same server process. However, a heartbeat of one session does
// not show that the connections of the other sessions still work. So the sessions send heartbeats in turn, and one
// session, the leader, decides when to send. Each connection is then used regularly, and a broken connection is
// noticed.
type beats struct {
	mu       sync.Mutex // held while heartbeats are sent or judged; held before watchers.mu and Pipe.mu
	sessions []*session // the open sessions
}

// leave removes a session. After leave has returned, s judges no heartbeat of another session. If another session has
// decided that s sends a heartbeat, and the reply is outstanding, the next session sends a heartbeat instead: the
// deciding session would otherwise get none for two intervals.
func (b *beats) leave(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	leader := s.leader
	s.leader = nil // so that an ended leader can be freed
	b.sessions = slices.DeleteFunc(b.sessions, func(other *session) bool { return other == s })
	if s.beating && leader != nil && leader != s && leader.open() && leader.lastInfo.Load().Steady() < s.sent.Steady() {
		b.next(leader).send("", leader)
	}
}

// covered returns for how long s need not decide to send a heartbeat. If another session decided to send the last
// heartbeat, s waits for one interval, plus a quarter of the timeout in which the reply to the next heartbeat may
// arrive. The caller must hold beats.mu.
func (s *session) covered() time.Duration {
	if !s.byOther {
		return 0
	}
	cfg := &s.m.cfg
	//mutant:shared-heartbeat-lasts = cfg.Heartbeat
	return cfg.Heartbeat + cfg.Timeout/4 - s.age()
}

// next returns the session whose turn it is to send a heartbeat for s: among s and the sessions whose heartbeats are
// valid for s, the session whose last heartbeat is the oldest. The caller must hold b.mu.
func (b *beats) next(s *session) *session {
	next := s
	if !s.open() { // the heartbeats of other sessions are not judged for s
		return s
	}
	for _, other := range b.sessions {
		counts := s.digest != "" && other.digest == s.digest
		if counts && other.info.RunID == s.info.RunID && !other.beating && other.sent.Steady() < next.sent.Steady() {
			next = other
		}
	}
	return next
}

// spread passes a heartbeat of s to the other sessions with the server, which judge it. A session sends its own
// heartbeat instead if the server has changed since that session last read its place. The caller must hold b.mu.
func (b *beats) spread(s *session, h heard) {
	for _, other := range b.sessions {
		switch {
		case other == s || other.info.RunID != s.info.RunID:
		case h.digest == "": // without digests, each session must send its own heartbeats
		case !other.knows(h):
			other.send(h.digest, s.leader)
		default:
			if other.byOther = other != s.leader; s.knows(h) {
				other.stop = s.stop
			}
			other.judge(h)
		}
	}
}
