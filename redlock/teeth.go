package redlock

// Protections that tests take away, one at a time, to show that the checks of the randomised runs can fail. Nothing but
// a test of this package sets them, before any Locker is made.
var (
	unsafeNoTombstone bool // a release does not raise the bar
	unsafeNoRecheck   bool // a quorum wins, however late it comes
	unsafeNoUnknown   bool // masters whose outcome is unknown are not rolled back
)
