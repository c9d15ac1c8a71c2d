package redlockinfo

import (
	"encoding/json"
	"errors"
	"time"
)

// A Master is the state of one master.
type Master struct {
	Addr    string
	Shard   int // number of the shard, from 1; 0 without shards
	State   State
	Left    time.Duration // remaining time of a quarantine
	MaxTTL  time.Duration // max TTL in the admission record; 0 if no record was read; see Admin.RaiseMaxTTL
	Epoch   int64         // epoch in the admission record; see redlock.Configuration
	List    string        // hash of the epoch, the shard and the lists of masters in the record; "" if no record was read
	Pending int           // number of names with a pending release, counted for all Lockers of the pool
	Err     error         // why the master does not vote, or grants no locks
}

// A State is the state of a [Master].
type State string

// The states of a master.
const (
	StateConnecting State = "connecting" // the first connection, or the read of the record, is pending
	StateDown       State = "down"       // unreachable, or refused by the pool
	StateQuarantine State = "quarantine" // does not vote, because it may have lost locks that are still valid
	StateVoting     State = "voting"
	StateFailing    State = "failing" // votes, but answers calls with an error, or its clock is wrong
	StateBlocked    State = "blocked" // cannot vote until a problem is fixed
)

// MarshalJSON implements [json.Marshaler]. Err is the text of the error, and is left out if there is none. Durations
// are in nanoseconds, as encoding/json writes them.
func (m Master) MarshalJSON() ([]byte, error) {
	type fields Master
	return json.Marshal(struct {
		fields
		Err string `json:",omitempty"`
	}{fields(m), textOf(m.Err)})
}

// UnmarshalJSON implements [json.Unmarshaler]. It reads the result of MarshalJSON; Err then has only the text of the
// error.
func (m *Master) UnmarshalJSON(text []byte) error {
	type fields Master
	read := struct {
		*fields
		Err string
	}{fields: (*fields)(m)}
	err := json.Unmarshal(text, &read)
	m.Err = withText(read.Err)
	return err
}

// textOf returns the text of err, or "" if err is nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// withText returns an error with this text, or nil if the text is "".
func withText(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// An Inspection shows which clients hold a name or wait for it, according to the masters.
type Inspection struct {
	// Client is the holder; for a redlock.RWLock it is the writer, not a reader, and for a redlock.Semaphore see Slots. If
	// no lease has a quorum, Client is zero: see Free.
	Client
	Answered int // number of masters that answered
	// Free reports whether no client holds the name: a majority of the masters votes, and has no lease of the name. If
	// there is neither a holder nor a reader, and Free is false, it is unknown whether a client holds the name. Partial
	// and Quarantined then show what is known.
	Free bool
	// Partial are the leases that some masters have, but no quorum, the lease on the most masters first. Their clients may
	// hold the name if the other masters have forgotten the lease or did not answer.
	Partial []Lease
	// Quarantined is the number of masters that answered but do not vote, because they are in quarantine or cannot be
	// admitted. They may have forgotten leases.
	Quarantined int
	// Token is the fencing token with which the lease was acquired; 0 for a writer of a redlock.RWLock. The holder has a
	// larger one, less than a second ahead, if the lease was handed off or taken over within its client since.
	Token int64
	// Value is the value that the holder has set; see redlock.Lock.SetValue.
	Value string
	N     int // number of all masters
	// Left is the time for which at least a quorum keeps the lease unless it is extended: the quorum-th largest remaining
	// TTL, less the duration of the inspection and the drift.
	Left time.Duration
	// Kept reports whether the holder has unlocked the lock, and a minimum hold still keeps the name from other clients;
	// see redlock.WithMinHold.
	Kept bool
	// Idle reports whether the lock lingers: it is not in use, and is released as soon as another client requests the
	// name; see redlock.WithLinger. Only the Locker that has the lock knows that. For other Lockers, Idle reports whether
	// the lock may linger.
	Idle bool
	// Readers are the readers of a redlock.RWLock that a quorum of masters reports, the oldest first. Each master reports
	// at most a hundred readers. ReaderCount is the number of all readers.
	Readers     []Client
	ReaderCount int
	// Slots are the inspections of the slots of a redlock.Semaphore: that of slot 1 first. Then ID is "", and Free reports
	// whether all slots are free. Slots is nil for other names, and if no client has used the semaphore lately.
	Slots []Inspection
	// Waiters are the waiting clients in the order of the queue. Each master reports the first ten. WaiterCount is the
	// number of all waiters. A waiter whose client has died stays in the queue for up to 21 s.
	Waiters     []Client
	WaiterCount int
}

// A Lease is a lease on some masters.
type Lease struct {
	Client
	Left time.Duration // the longest remaining TTL on any master
}

// A Client is a client that holds a name or waits for it.
type Client struct {
	ID    string    // id of the lease; "" for a waiter
	Label string    // label of the client; see redlock.WithLabel
	Since time.Time // when the client acquired the lease or began to wait; zero if unknown
	On    int       // number of masters that report the client; 0 without a client
}
