package scripts

import (
	"errors"
	"fmt"
	"strings"
)

// MaxName is the length of the longest name, in bytes.
const MaxName = 64 << 10

// maxPrefix is the length of the longest prefix, in bytes.
const maxPrefix = 1 << 10

// A Prefix begins every key of a fleet on its masters. Lockers with different prefixes know nothing of each other.
//
// A key is P:{name}:kind. A prefix has no '{', so the first ":{" of a key ends the prefix, and the last "}:" begins the
// kind: whatever bytes a name has, no two names, kinds or prefixes share a key. The braces also put all keys of a name
// in one hash slot.
type Prefix string

// CheckPrefix reports what is wrong with p, or nil.
func CheckPrefix(p string) error {
	switch {
	case p == "":
		return errors.New("the key prefix is empty: without one the keys of locks mix with your data")
	case len(p) > maxPrefix:
		return fmt.Errorf("the key prefix has %d bytes; %d are the most", len(p), maxPrefix)
	case strings.ContainsAny(p, "{}"):
		return fmt.Errorf("the key prefix %q has a brace: keys of different prefixes could collide", p)
	}
	return nil
}

// CheckName reports what is wrong with a name, or nil. Every byte is allowed in a name.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("the name of the lock is empty")
	case len(name) > MaxName:
		return fmt.Errorf("the name of the lock has %d bytes; %d are the most (it begins %q)", len(name), MaxName, name[:32])
	}
	return nil
}

// Keys are the keys of one name, boxed for use in many calls.
type Keys struct {
	lock, bar, queue, alive any
}

// Keys returns the keys of name. They are cut from one text.
func (p Prefix) Keys(name string) Keys {
	stem := len(p) + len(":{") + len(name) + len("}:")
	var b strings.Builder
	b.Grow(4*stem + len("lockbarqueuealive"))
	at := [5]int{}
	for i, kind := range [...]string{"lock", "bar", "queue", "alive"} {
		b.WriteString(string(p))
		b.WriteString(":{")
		b.WriteString(name)
		b.WriteString("}:")
		b.WriteString(kind)
		at[i+1] = b.Len()
	}
	all := b.String()
	return Keys{lock: all[:at[1]], bar: all[at[1]:at[2]], queue: all[at[2]:at[3]], alive: all[at[3]:]}
}

// Lock is the key of the lock, Bar that of the bar, Channel that of the release messages, Marker that of the master's
// admission.
func (p Prefix) Lock(name string) string { return string(p) + ":{" + name + "}:lock" }

// Bar is the key of the bar of name.
func (p Prefix) Bar(name string) string { return string(p) + ":{" + name + "}:bar" }

// Channel is the channel on which a release of name is told.
func (p Prefix) Channel(name string) string { return string(p) + ":{" + name + "}:free" }

// Queue is the key of the waiters for name, Alive that of until when each counts.
func (p Prefix) Queue(name string) string { return string(p) + ":{" + name + "}:queue" }

// Alive is the key of until when each waiter counts.
func (p Prefix) Alive(name string) string { return string(p) + ":{" + name + "}:alive" }

// Inbox is the channel on which the waiters of the Locker with this id hear that it is their turn. Inbox("") begins all.
func (p Prefix) Inbox(locker string) string { return string(p) + ":inbox:" + locker }

// Marker is the key of the master's admission.
func (p Prefix) Marker() string { return string(p) + ":marker" }
