package scripts

// A Role is the role of a lease. The role determines which scripts are sent for the lease.
type Role uint8

// The roles. A name has plain locks, or readers and writers, or the slots of a semaphore.
const (
	Plain  Role = iota // the only holder of a plain lock, or of a slot
	Reader             // one of many readers that hold a readers-writer lock
	Writer             // the only holder of a readers-writer lock
)

// mark returns the suffix of the number in a lease id that shows the role.
func (role Role) mark() string { return [...]string{"", "r", "w"}[role] }

// Fields of the hash of a name besides the leases, and values of FieldKind.
const (
	FieldFence = "fence" // the largest ballot that was accepted for the name, or that a release has ended
	FieldReads = "reads" // the largest ballot that was accepted from a reader
	FieldQueue = "queue" // present while clients may wait
	FieldKept  = "kept"  // how long the key outlives its lease, in ms; absent: FenceKept
	FieldKind  = "kind"  // absent for plain locks
	KindLock   = "lock"  // in replies, for a name of plain locks
	KindShared = "readers-writer"
)
