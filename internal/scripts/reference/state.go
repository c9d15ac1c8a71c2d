package reference

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Type is what a key holds.
type Type string

// The types, by the names that Redis gives them. Other is any that no script can use.
const (
	None      Type = "none"
	String    Type = "string"
	Hash      Type = "hash"
	SortedSet Type = "zset"
	Other     Type = "list"
)

// A Field is one field of a hash. The fields of a hash stay in the order in which they came.
type Field struct{ Name, Value string }

// A Value is what one key holds, and for how long.
type Value struct {
	Type   Type
	Text   string  // of a String
	Fields []Field // of a Hash, or the members and scores of a SortedSet, in their order
	// Expires is the last moment at which the key is there, in microseconds of the master's clock and whole
	// milliseconds; 0 where the key does not expire.
	Expires int64
}

// State is the keyspace of one master. The zero State is empty and ready for use. It is not safe for concurrent use.
//
// Times are microseconds of the master's clock. They need not grow; a key that is found expired is deleted.
type State struct {
	keys map[string]Value
}

// lookup returns what key holds at now; its type is None where there is nothing.
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

// Look returns what key holds at now; its Type is None where there is nothing. The fields are the caller's to keep.
func (s *State) Look(now int64, key string) Value {
	v := s.lookup(now, key)
	v.Fields = slices.Clone(v.Fields)
	return v
}

// Get returns the text of a string key, and whether there is such a key.
func (s *State) Get(now int64, key string) (string, bool) {
	v := s.lookup(now, key)
	return v.Text, v.Type == String
}

// Hash returns the fields of a hash, nil where there is none.
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

// Shares returns the shares of a lock with readers that count, by their ends; nil where there are none.
func (s *State) Shares(now int64, key string) (shares []Field) {
	if v := s.lookup(now, key); v.Type == SortedSet {
		for _, f := range v.Fields {
			if f.score() > now {
				shares = append(shares, f)
			}
		}
	}
	return shares
}

// TTL returns the milliseconds left to a key as PTTL does: -1 where it does not expire, -2 where it is not there.
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

// Keys returns the keys that are there at now, sorted.
func (s *State) Keys(now int64) []string {
	for key := range s.keys {
		s.lookup(now, key)
	}
	return slices.Sorted(maps.Keys(s.keys))
}

// Set makes key a string; ttl is in milliseconds, and 0 keeps it for ever.
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

// SetOther makes key one that no script can use.
func (s *State) SetOther(key string) { s.put(key, Value{Type: Other}) }

// Expire gives a key that is there ttl milliseconds from now, and deletes it where that is not above zero. It reports
// whether the key was there.
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

// Delete removes a key and reports whether it was there.
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

// String returns all keys and what they hold, in one order: equal states have equal texts. Keys that are expired but
// have not been found so are among them.
func (s *State) String() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		v := s.keys[key]
		fmt.Fprintf(&b, "%q %s %q %q %d\n", key, v.Type, v.Text, v.Fields, v.Expires)
	}
	return b.String()
}

// field returns one field of a hash.
func (v Value) field(name string) (string, bool) {
	for _, f := range v.Fields {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}

// setField is HSET of one field: it makes the hash where there is none, and leaves its time as it is.
func (s *State) setField(now int64, key, name, value string) {
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

// deleteFields is HDEL and ZREM: it returns how many of the fields were there. A hash without fields is no key.
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

// SetScore is ZADD: it adds a member to a sorted set, or moves it. The members of a sorted set stay in the order of
// their scores, then of their bytes.
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

// score is that of a member of a sorted set. The scores of the scripts are whole numbers.
func (f Field) score() int64 {
	n, _ := strconv.ParseInt(f.Value, 10, 64)
	return n
}

// place is ZRANK: -1 where it is not there.
func (v Value) place(member string) int {
	return slices.IndexFunc(v.Fields, func(f Field) bool { return f.Name == member })
}
