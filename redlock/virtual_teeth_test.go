package redlock

// Teeth are the protections that the tests of the other package can take away.
var Teeth = struct{ NoTombstone, NoRecheck, NoUnknown *bool }{&unsafeNoTombstone, &unsafeNoRecheck, &unsafeNoUnknown}
