package floor

import (
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// plainRelease deletes a key where its value is the caller's. Its SHA-1 stands in plainSHA.
const plainRelease = `if redis.call("GET",KEYS[1])==ARGV[1] then return redis.call("DEL",KEYS[1]) end return 0`

var (
	plainSHA any = "8f464d4a626461dd45dd7ecb315f41a7354a3819"
	anyOne   any = "1"
	anyNX    any = "NX"
	anyPX    any = "PX"
)

// A Caller is what one goroutine locks and unlocks with, one lock at a time.
type Caller struct {
	f      *Floor
	wake   chan struct{}
	ballot int64
	keys   scripts.Keys // of what is held, or was last
	grants []string     // one, what is held, or was last
	key    any          // of the plain form, as is value
	value  any
}

// NewCaller returns a Caller for one goroutine.
func (f *Floor) NewCaller() *Caller {
	return &Caller{f: f, wake: make(chan struct{}, 1), grants: make([]string, 1)}
}

// Lock locks name. It returns with the word of a majority.
func (c *Caller) Lock(name string) {
	f := c.f
	id := f.grant()
	if f.plain {
		c.key, c.value = f.prefix.Lock(name), id
		c.send(command{name: "SET", args: []any{c.key, c.value, anyNX, anyPX, f.millis}})
		return
	}
	c.ballot = max(time.Now().UnixMicro()+f.offset, c.ballot+1)
	c.keys, c.grants[0] = f.prefix.Keys(name), id
	c.send(callOf(f.encoder.Acquire(&c.keys, id, f.ttl, c.ballot, c.ballot, nil)))
}

// Unlock releases what Lock has locked. It returns with the word of a majority.
func (c *Caller) Unlock() {
	if c.f.plain {
		c.send(command{name: "EVALSHA", args: []any{plainSHA, anyOne, c.key, c.value}})
		return
	}
	c.send(callOf(c.f.encoder.Release(&c.keys, scripts.Ending{Grants: c.grants})))
}

// Pair locks name and unlocks it.
func (c *Caller) Pair(name string) {
	c.Lock(name)
	c.Unlock()
}

func (c *Caller) send(cmd command) {
	c.f.send(cmd, &round{f: c.f, quorum: c.f.quorum, wake: c.wake})
}
