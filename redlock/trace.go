package redlock

// The kinds of events.
const (
	kindCall         = "call"
	kindAttempt      = "attempt"
	kindVote         = "vote"
	kindAcquired     = "acquired"
	kindReleased     = "released"
	kindLost         = "lost"
	kindExtended     = "extended"
	kindRepaired     = "repaired"
	kindMaster       = "master"
	kindReconfigured = "reconfigured"
	kindWarning      = "warning"
)
