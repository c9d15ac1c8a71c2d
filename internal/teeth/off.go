//go:build !redlock_teeth

package teeth

// All protections are in.
const (
	RunIDAlone        = false
	OwnGuardTime      = false
	NoTombstone       = false
	NoBar             = false
	NoBounds          = false
	KeepGrants        = false
	NoRecheck         = false
	NoUnknown         = false
	ExtendEnded       = false
	HealUnconfirmed   = false
	HealOldBallot     = false
	SameBallots       = false
	QuorumOfConnected = false
	NoEpoch           = false
	NoTogether        = false
)
