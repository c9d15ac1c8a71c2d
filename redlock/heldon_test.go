package redlock

// HeldOn returns how many of the n masters are connected and known to have the lock, for the tests.
func (k *Lock) HeldOn() (on, n int) { return heldOn(k) }
