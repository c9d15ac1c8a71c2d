//go:build redlock_teeth

package teeth

// The protections that can be taken away.
var (
	RunIDAlone        bool // a server is known by its run id, whatever has become of its data
	OwnGuardTime      bool // a quarantine lasts for the guard time of whoever starts it
	NoTombstone       bool // a release does not raise the bar
	NoBar             bool // any ballot is accepted
	NoBounds          bool // a ballot may be any time from a master's clock
	KeepGrants        bool // masters that granted are not asked again when the others are
	NoRecheck         bool // a quorum wins, however late it comes
	NoUnknown         bool // masters whose outcome is unknown are not rolled back
	ExtendEnded       bool // a hold that has ended is prolonged and healed
	HealUnconfirmed   bool // a lost key is given back without a majority's word
	HealOldBallot     bool // ... and with the ballot that the hold was won with
	SameBallots       bool // a hold may be asked for again by a ballot that it was asked for before
	QuorumOfConnected bool // a quorum is one of the masters that are connected
	NoEpoch           bool // nobody compares the epoch in the markers
	NoTogether        bool // a set acts alone whether the change to it is complete or not
)
