package redlockinfo

import (
	"time"
)

// A Master is the state of one master.
type Master struct {
	Addr    string
	Shard   int           // the number of its shard, from 1; 0 if there is one set of masters
	State   string        // "connecting", "down", "quarantine", "voting", "failing" or "blocked"
	Left    time.Duration // how long a quarantine still lasts
	MaxTTL  time.Duration // the max TTL in its admission record, 0 if none was read; see redlock.Admin.RaiseMaxTTL
	Epoch   int64         // the epoch in its admission record; see redlock.Configuration
	Pending int           // names of which a release is still to be sent; the Lockers of one pool share this
	Err     error         // why it does not vote
}

// An Inspection reports which clients hold a name and wait for it, according to the masters.
type Inspection struct {
	// Client is the holder; of a redlock.RWLock it is the writer, not a reader. Its ID is "" if no lease has a quorum; On
	// is then the number of masters that answered.
	Client
	Token int64 // the fencing token; 0 for a writer
	// Value is what the holder shows; see redlock.SetValue.
	Value string
	N     int // the number of masters
	// Left is the time for which at least a quorum keeps the lease if it is not extended: the quorum-th largest TTL,
	// less the time of the inspection and the drift.
	Left time.Duration
	// Kept reports whether the lock was unlocked, but a minimum hold still keeps the name from other clients; see
	// redlock.WithMinHold.
	Kept bool
	// Idle reports whether the lock is not in use, and is released as soon as another client requests it; see
	// redlock.WithLinger. Only the Locker that keeps the lock knows that. For other Lockers, Idle reports whether the
	// lock may be in this state.
	Idle bool
	// Readers are the readers of a redlock.RWLock that a quorum of masters reports, the oldest first. Each master reports
	// at most a hundred. ReaderCount is the number of all readers.
	Readers     []Client
	ReaderCount int
	// Waiters are the clients that wait, in the order of the queue. Each master reports its first ten. WaiterCount is the
	// number of all waiters. A waiter whose client has died is in the queue for up to 21 s.
	Waiters     []Client
	WaiterCount int
}

// A Client is one that holds a name, or waits for it.
type Client struct {
	ID    string    // of its lease; "" for a waiter
	Owner string    // its label; see redlock.WithOwner
	Since time.Time // when it acquired the lease, or began to wait; zero if the masters do not say
	On    int       // the number of masters that report it
}
