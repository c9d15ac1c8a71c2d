package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// remains is what a contender has left on all its masters together when its last lock has been released.
type remains struct {
	locks int           // keys of locks
	keys  int           // of any kind
	bytes int64         // by MEMORY USAGE
	kept  time.Duration // the longest that a key is kept that ends by itself
}

// What is measured of what is left. Bytes and keys are those of one master on average.
var (
	mLeft      = metric{"left/10000", "1", less} // lock keys on any master
	mKeysLeft  = metric{"keys/master", "1", less}
	mBytesLeft = metric{"bytes/key", "bytes", less}
	mBytesAll  = metric{"bytes/master", "bytes", less}
	mKept      = metric{"kept", "s", less}
)

// addRemains adds what is left of so many holds.
func (b *bench) addRemains(scenario, kase, who string, left remains, holds int) {
	masters := float64(len(b.masters.urls))
	b.add(scenario, kase, who, mLeft, 10_000*float64(left.locks)/float64(max(holds, 1)))
	b.add(scenario, kase, who, mKeysLeft, float64(left.keys)/masters)
	b.add(scenario, kase, who, mBytesAll, float64(left.bytes)/masters)
	b.add(scenario, kase, who, mKept, left.kept.Seconds())
	if left.keys > 0 {
		b.add(scenario, kase, who, mBytesLeft, float64(left.bytes)/float64(left.keys))
	}
}

// leftCase names what a scenario has left behind.
const leftCase = "left behind"

var mHeldInAll = metric{"holds", "1", ""}

// took takes note that a contender has held so many locks in this scenario, and has ended all of them.
func (b *bench) took(who string, holds int) {
	if b.holds == nil {
		b.holds = map[string]int{}
	}
	b.holds[who] += holds
}

// countLeft counts what the holds of a round have left on the masters, keys of locks and all others, and removes it.
func (b *bench) countLeft(ctx context.Context, scenario string) error {
	for _, e := range entrants {
		holds := b.holds[e.name]
		if holds == 0 {
			continue
		}
		left, err := b.masters.leftBehind(ctx, b.prefixOf(e.name), e.suffix)
		if err != nil {
			return err
		}
		b.add(scenario, leftCase, e.name, mHeldInAll, float64(holds))
		b.addRemains(scenario, leftCase, e.name, left, holds)
		if left.locks > 0 {
			b.report.note("%s, %s: %d lock keys of %d holds were left behind", scenario, e.name, left.locks, holds)
		}
		if err := b.masters.sweep(ctx, b.prefixOf(e.name)); err != nil {
			return err
		}
	}
	b.holds = nil
	return nil
}

// leftBehind waits a second for the last releases to land and returns what is left under prefix. The keys of locks end
// with suffix.
func (m *masters) leftBehind(ctx context.Context, prefix, suffix string) (remains, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for try := 0; ; try++ {
		r, err := m.remains(ctx, prefix, suffix)
		if err != nil || r.locks == 0 || try == 50 {
			return r, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
	}
}

// remains looks at all keys with that prefix.
func (m *masters) remains(ctx context.Context, prefix, suffix string) (r remains, err error) {
	err = m.each(ctx, func(_ int, c redis.Conn) error {
		keys, err := scanKeys(c, prefix)
		r.keys += len(keys)
		for _, k := range keys {
			if strings.HasSuffix(k, suffix) {
				r.locks++
			}
		}
		return errors.Join(err, r.weigh(c, keys))
	})
	return r, err
}

// weigh adds the bytes of keys of one master. A key may end meanwhile.
func (r *remains) weigh(c redis.Conn, keys []string) error {
	for _, k := range keys {
		if err := c.Send("MEMORY", "USAGE", k); err != nil {
			return err
		}
		if err := c.Send("PTTL", k); err != nil {
			return err
		}
	}
	if err := c.Flush(); err != nil {
		return err
	}
	for range keys {
		n, err := redis.Int64(c.Receive())
		if err != nil && !errors.Is(err, redis.ErrNil) {
			return err
		}
		left, err := redis.Int64(c.Receive())
		if err != nil {
			return err
		}
		r.bytes += n
		r.kept = max(r.kept, time.Duration(left)*time.Millisecond)
	}
	return nil
}

// scanKeys lists the keys of a master that begin with prefix, which has no pattern characters.
func scanKeys(c redis.Conn, prefix string) ([]string, error) {
	var all []string
	cursor := "0"
	for {
		reply, err := redis.Values(c.Do("SCAN", cursor, "MATCH", prefix+"*", "COUNT", "1000"))
		if err != nil {
			return nil, err
		}
		var page []string
		if _, err := redis.Scan(reply, &cursor, &page); err != nil {
			return nil, err
		}
		all = append(all, page...)
		if cursor == "0" {
			return all, nil
		}
	}
}
