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
	bytes int64         // by MEMORY USAGE; -1 where it is not known
	kept  time.Duration // the longest that a key is kept that ends by itself
}

// What is measured of what is left. Bytes and keys are those of one master on average.
var (
	mLeft      = metric{"left/10000", "1", less} // lock keys on any master
	mKeysLeft  = metric{"keys/master", "1", less}
	mBytesLeft = metric{"bytes/key", "bytes", less}
	mKept      = metric{"kept", "s", less}
)

// addRemains adds what is left of so many holds.
func (b *bench) addRemains(scenario, kase, who string, left remains, masters, holds int) {
	b.add(scenario, kase, who, mLeft, 10_000*float64(left.locks)/float64(max(holds, 1)))
	b.add(scenario, kase, who, mKeysLeft, float64(left.keys)/float64(masters))
	if left.bytes >= 0 && left.keys > 0 {
		b.add(scenario, kase, who, mBytesLeft, float64(left.bytes)/float64(left.keys))
		b.add(scenario, kase, who, mKept, left.kept.Seconds())
	}
}

// leftBehind waits a second for the last releases to land and returns what is left under prefix. The keys of locks end
// with suffix.
func (m *masters) leftBehind(ctx context.Context, prefix, suffix string) (remains, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for try := 0; ; try++ {
		r, err := m.remains(ctx, prefix, suffix, try == 50)
		if err == nil && r.locks == 0 {
			return m.remains(ctx, prefix, suffix, true)
		}
		if err != nil || try == 50 {
			return r, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
	}
}

// remains looks at all keys with that prefix; weighed with their bytes and times.
func (m *masters) remains(ctx context.Context, prefix, suffix string, weighed bool) (r remains, err error) {
	r.bytes = -1
	count := func(keys []string) {
		for _, k := range keys {
			if !strings.HasPrefix(k, prefix) {
				continue
			}
			r.keys++
			if strings.HasSuffix(k, suffix) {
				r.locks++
			}
		}
	}
	if m.memory != nil {
		count(m.memory.keys())
		return r, nil
	}
	if weighed {
		r.bytes = 0
	}
	err = m.each(ctx, func(_ int, c redis.Conn) error {
		keys, err := scanKeys(c, prefix)
		count(keys)
		if err == nil && weighed {
			err = r.weigh(c, keys)
		}
		return err
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
