package scripts

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// The defaults of a deployment.
const (
	DefaultPrefix = "redlock"
	DefaultMaxTTL = 30 * time.Second
)

// MaxName and maxPrefix are maximum lengths in bytes.
const (
	MaxName   = 64 << 10
	maxPrefix = 1 << 10
)

// A Prefix is the beginning of all keys of a deployment on its masters. Lockers with different prefixes are independent
// of each other.
//
// The lock of a name has the key P:{name}, and its other keys are P:{name}:kind. A prefix contains no ":{", so the
// first ":{" of a key ends the prefix. A key that ends in "}" is a lock; in any other key the kind follows the last
// "}:". So no two names, kinds or prefixes share a key, even if a name contains such characters. The scripts use the
// same rule to find the prefix of the inbox channels. The lock of a slot of a semaphore has the key P:{name}:slot:i/k.
//
// The prefix of a bucket of a cluster ends in the number of the bucket in braces: P{17}. The braces put all keys of the
// bucket into one hash slot, the admission record included. A colon before the brace would make a ":{", so the part
// before the brace must not end in a colon, nor may any prefix.
type Prefix string

// bucketTag matches the end of the prefix of a bucket.
var bucketTag = regexp.MustCompile(`\{[1-9][0-9]{0,2}\}$`)

// CheckPrefix returns an error if prefix is invalid.
func CheckPrefix(prefix string) error {
	base := bucketTag.ReplaceAllString(prefix, "")
	switch {
	case prefix == "":
		return errors.New("the key prefix is empty: without a prefix, the keys of locks could mix with your data")
	case len(prefix) > maxPrefix:
		return fmt.Errorf("the key prefix has %d bytes, the maximum is %d", len(prefix), maxPrefix)
	case !utf8.ValidString(prefix):
		return fmt.Errorf("the key prefix %q is not UTF-8", prefix)
	case strings.ContainsAny(base, "{}") || base == "":
		return fmt.Errorf("the key prefix %q contains a brace: keys of different prefixes could collide", prefix)
	case strings.HasSuffix(base, ":"):
		return fmt.Errorf("the key prefix %q ends in a colon: omit the colon, since every key has one after the prefix", base)
	}
	return nil
}

// CheckName returns an error if name is invalid. A name must be valid UTF-8, because JSON, logs and metrics could show
// two different invalid names as the same text.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("the name of the lock is empty")
	case len(name) > MaxName:
		return fmt.Errorf("the name of the lock has %d bytes, the maximum is %d (it begins with %q)",
			len(name), MaxName, name[:32])
	case !utf8.ValidString(name):
		return fmt.Errorf("the name of the lock, %q, is not UTF-8: encode it, for example in hexadecimal", name)
	}
	return nil
}

// Keys holds the key of one name in one role, for use in many calls. The scripts derive the other keys of the name from
// it.
type Keys struct {
	lock string
	role Role
	slot bool // whether the name is that of a slot
}

// Keys returns the key of name.
func (p Prefix) Keys(name string) Keys { return p.KeysOf(name, Plain) }

// KeysOf returns the key of name for a role.
func (p Prefix) KeysOf(name string, role Role) Keys {
	return Keys{lock: p.Lock(name), role: role, slot: strings.Contains(name, slotMark)}
}

// Role returns the role of k.
func (k *Keys) Role() Role { return k.role }

// Lock returns the key of the lock itself.
func (k Keys) Lock() string { return k.lock }

// Lock returns the key of the lock of name.
func (p Prefix) Lock(name string) string {
	if semaphore, slot, found := strings.Cut(name, slotMark); found {
		return string(p) + ":{" + semaphore + "}" + slotKey + slot
	}
	return string(p) + ":{" + name + "}"
}

// slotKey separates, in the key of a slot, the key of the semaphore from the slot.
const slotKey = ":slot:"

// NameOf returns the name whose lock has this key: of a slot, the one that Slot.Name returns. It reports whether the
// key is that of a lock of p.
func (p Prefix) NameOf(key string) (name string, ok bool) {
	name, ours := strings.CutPrefix(key, string(p)+":{")
	name, whole := strings.CutSuffix(name, "}")
	if i := strings.LastIndex(name, "}"+slotKey); !whole && i >= 0 {
		slot := parseSlot(name[i+len("}"+slotKey):])
		return slot.Name(name[:i]), ours && slot != Slot{} && CheckName(name[:i]) == nil
	}
	return name, ours && whole && CheckName(name) == nil
}

// Queue returns the key of the sorted set of waiters for name, in the order of their ranks.
func (p Prefix) Queue(name string) string { return p.of(name, "queue") }

// Waiters returns the key of the sorted set of waiters for name, with the times until which they count.
func (p Prefix) Waiters(name string) string { return p.of(name, "waiters") }

// Shares returns the key of the sorted set of shares of a readers-writer lock, scored by their deadlines.
func (p Prefix) Shares(name string) string { return p.of(name, "shares") }

func (p Prefix) of(name, kind string) string { return p.Lock(name) + ":" + kind }

// Inbox returns the channel on which the waiters of an owner receive their wake-ups. Inbox("") is the common prefix of
// the names of these channels.
func (p Prefix) Inbox(owner string) string { return string(p) + ":inbox:" + owner }

// Unused returns a key that is never written, and that no name leads to: for a write that changes nothing.
func (p Prefix) Unused() string { return string(p) + ":unused" }

// Admission returns the key of the master's admission record.
func (p Prefix) Admission() string { return string(p) + ":admission" }
