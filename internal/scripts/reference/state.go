package reference

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A Type is the type of a key's value.
type Type string

// The types, with the names that Redis uses. Other is any type that no script can use.
const (
	None      Type = "none"
	String    Type = "string"
	Hash      Type = "hash"
	SortedSet Type = "zset"
	Other     Type = "list"
)

// A Field is one field of a hash. The fields of a hash are in insertion order.
type Field struct{ Name, Value string }

// A Value is the value of one key, and its expiry.
type Value struct {
	Type   Type
	Text   string  // of a String
	Fields []Field // of a Hash, or the members and scores of a SortedSet, in order
	// Expires is the start of the last millisecond in which the key exists, in microseconds of the master's clock; 0 if
	// the key does not expire.
	Expires int64
}

// State is the keyspace of one master. The zero State is empty and ready for use. It is not safe for concurrent use.
//
// Times are microseconds of the master's clock. They need not be monotonic; a key that is found expired is deleted.
type State struct {
	keys map[string]Value
}

// lookup returns the value of key at now; its type is None if there is none.
func (s *State) lookup(now int64, key string) Value {
	v, ok := s.keys[key]
	if !ok {
		return Value{Type: None}
	}
	if v.Expires != 0 && now/1000 > v.Expires/1000 {
		delete(s.keys, key)
		return Value{Type: None}
	}
	return v
}

func (s *State) put(key string, v Value) {
	if s.keys == nil {
		s.keys = make(map[string]Value)
	}
	s.keys[key] = v
}

// Look returns the value of key at now; its Type is None if there is none. The caller may keep the fields.
func (s *State) Look(now int64, key string) Value {
	v := s.lookup(now, key)
	v.Fields = slices.Clone(v.Fields)
	return v
}

// Get returns the text of a string key, and whether the key exists.
func (s *State) Get(now int64, key string) (string, bool) {
	v := s.lookup(now, key)
	return v.Text, v.Type == String
}

// Hash returns the fields of a hash, or nil if there is no hash.
func (s *State) Hash(now int64, key string) map[string]string {
	v := s.lookup(now, key)
	if v.Type != Hash {
		return nil
	}
	m := make(map[string]string, len(v.Fields))
	for _, f := range v.Fields {
		m[f.Name] = f.Value
	}
	return m
}

// Lease returns the lease of a plain lock whose hash has this key, and the ms until it expires by the master's clock;
// id is "" if there is none, or if it has expired.
func (s *State) Lease(now int64, key string) (id, text string, left int64) {
	v := s.lookup(now, key)
	left = s.TTL(now, key) - v.kept()
	for _, f := range v.Fields {
		if left >= 0 && leaseText.MatchString(f.Value) {
			return f.Name, f.Value, left
		}
	}
	return "", "", 0
}

// DeleteLeases deletes the leases of a plain lock, and reports whether there was one.
func (s *State) DeleteLeases(now int64, key string) bool {
	var ids []string
	for _, f := range s.lookup(now, key).Fields {
		if leaseText.MatchString(f.Value) {
			ids = append(ids, f.Name)
		}
	}
	return s.deleteFields(now, key, ids...) > 0
}

// SetLease makes a lease of a plain lock, with this TTL in ms, the only one of a hash.
func (s *State) SetLease(now int64, key, id string, ttl int64) {
	fence := s.Hash(now, key)[scripts.FieldFence]
	if fence == "" {
		fence = digits(float64(now))
	}
	fields := []Field{{scripts.FieldFence, fence}, {id, scripts.LeaseText(1, now, now, now+ttl*1000)}}
	if queue, there := s.lookup(now, key).field(scripts.FieldQueue); there {
		fields = append(fields, Field{scripts.FieldQueue, queue})
	}
	s.SetHash(key, fields...)
	s.Expire(now, key, ttl+kept)
}

// Shares returns the shares of a readers-writer lock that count, from the key of the shares, in the order of their
// deadlines, or nil if there are none.
func (s *State) Shares(now int64, key string) (shares []Field) {
	if v := s.lookup(now, key); v.Type == SortedSet {
		for _, f := range v.Fields {
			if f.score() >= now {
				shares = append(shares, f)
			}
		}
	}
	return shares
}

// TTL returns the remaining milliseconds of a key as PTTL does: -1 if it does not expire, -2 if it does not exist.
func (s *State) TTL(now int64, key string) int64 {
	v := s.lookup(now, key)
	switch {
	case v.Type == None:
		return -2
	case v.Expires == 0:
		return -1
	default:
		return v.Expires/1000 - now/1000
	}
}

// Keys returns the keys that exist at now, sorted.
func (s *State) Keys(now int64) []string {
	for key := range s.keys {
		s.lookup(now, key)
	}
	return slices.Sorted(maps.Keys(s.keys))
}

// Set makes key a string; ttl is in milliseconds, and 0 means that the key does not expire.
func (s *State) Set(now int64, key, text string, ttl int64) {
	v := Value{Type: String, Text: text}
	if ttl != 0 {
		v.Expires = (now/1000 + ttl) * 1000
	}
	s.put(key, v)
}

// SetHash makes key a hash of these fields that does not expire; without fields it deletes the key.
func (s *State) SetHash(key string, fields ...Field) {
	if len(fields) == 0 {
		delete(s.keys, key)
		return
	}
	s.put(key, Value{Type: Hash, Fields: slices.Clone(fields)})
}

// SetOther sets key to a value that no script can use.
func (s *State) SetOther(key string) { s.put(key, Value{Type: Other}) }

// Expire sets the TTL of an existing key to ttl milliseconds, and deletes the key if ttl is not positive. It reports
// whether the key existed.
func (s *State) Expire(now int64, key string, ttl int64) bool {
	v := s.lookup(now, key)
	if v.Type == None {
		return false
	}
	if ttl <= 0 {
		delete(s.keys, key)
		return true
	}
	v.Expires = (now/1000 + ttl) * 1000
	s.put(key, v)
	return true
}

// Delete removes a key and reports whether it existed.
func (s *State) Delete(now int64, key string) bool {
	there := s.lookup(now, key).Type != None
	delete(s.keys, key)
	return there
}

// Flush removes every key.
func (s *State) Flush() { clear(s.keys) }

// Clone returns a copy that shares nothing with s.
func (s *State) Clone() *State {
	c := &State{keys: maps.Clone(s.keys)}
	for key, v := range c.keys {
		v.Fields = slices.Clone(v.Fields)
		c.keys[key] = v
	}
	return c
}

// String returns all keys and their values in a fixed order, so that equal states have equal texts. It includes
// expired keys that have not been deleted yet.
func (s *State) String() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		v := s.keys[key]
		fmt.Fprintf(&b, "%q %s %q %q %d\n", key, v.Type, v.Text, v.Fields, v.Expires)
	}
	return b.String()
}

// field returns the value of one field of a hash.
func (v Value) field(name string) (string, bool) {
	for _, f := range v.Fields {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}

// SetField models HSET of one field: it creates the hash if needed, and keeps its TTL.
func (s *State) SetField(now int64, key, name, value string) {
	v := s.lookup(now, key)
	v.Type = Hash
	fields := slices.Clone(v.Fields)
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		fields = append(fields, Field{name, value})
	} else {
		fields[i].Value = value
	}
	v.Fields = fields
	s.put(key, v)
}

// deleteFields models HDEL and ZREM: it returns how many of the fields existed, and deletes a key without fields.
func (s *State) deleteFields(now int64, key string, names ...string) int {
	v := s.lookup(now, key)
	kept := slices.DeleteFunc(slices.Clone(v.Fields), func(f Field) bool { return slices.Contains(names, f.Name) })
	n := len(v.Fields) - len(kept)
	v.Fields = kept
	switch {
	case n == 0:
	case len(kept) == 0:
		delete(s.keys, key)
	default:
		s.put(key, v)
	}
	return n
}

// SetScore models ZADD: it adds a member to a sorted set, or moves it. The members of a sorted set are ordered by their
// scores, then by their bytes.
func (s *State) SetScore(now int64, key, member string, score int64) {
	v := s.lookup(now, key)
	v.Type = SortedSet
	v.Fields = slices.DeleteFunc(slices.Clone(v.Fields), func(f Field) bool { return f.Name == member })
	at, _ := slices.BinarySearchFunc(v.Fields, score, func(f Field, score int64) int {
		return cmp.Or(cmp.Compare(f.score(), score), strings.Compare(f.Name, member))
	})
	v.Fields = slices.Insert(v.Fields, at, Field{member, strconv.FormatInt(score, 10)})
	s.put(key, v)
}

// score returns the score of a member of a sorted set. The scores of the scripts are whole numbers.
func (f Field) score() int64 {
	n, _ := strconv.ParseInt(f.Value, 10, 64)
	return n
}

// place models ZRANK: it returns the index of a member, or -1 if the set does not contain it.
func (v Value) place(member string) int {
	return slices.IndexFunc(v.Fields, func(f Field) bool { return f.Name == member })
}
