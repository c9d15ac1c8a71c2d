package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// remains counts what a contender has left on all masters together after the release of its last lock.
type remains struct {
	locks int           // keys of locks
	keys  int           // keys of any kind
	bytes int64         // bytes according to MEMORY USAGE
	kept  time.Duration // longest remaining TTL of a key
}

// Metrics of leftovers. Keys are an average per master, and bytes an average per key of a master.
var (
	mLeft     = metric{"left/10000", "1", less} // lock keys on any master
	mKeysLeft = metric{"keys/master", "1", less}
	mBytes    = metric{"bytes/name", "bytes", less}
	mKept     = metric{"kept", "s", less}
)

// addRemains adds the leftovers of the given number of holds.
func (b *bench) addRemains(scenario, kase, who string, left remains, holds int) {
	masters := float64(len(b.masters.urls))
	b.add(scenario, kase, who, mLeft, 10_000*float64(left.locks)/float64(max(holds, 1)))
	b.add(scenario, kase, who, mKeysLeft, float64(left.keys)/masters)
	b.add(scenario, kase, who, mBytes, float64(left.bytes)/float64(max(left.keys, 1)))
	b.add(scenario, kase, who, mKept, left.kept.Seconds())
}

// leftCase is the name of the case with the leftovers of a scenario.
const leftCase = "left behind"

var mHeldInAll = metric{"holds", "1", ""}

// took records that a contender has acquired and released this many locks in this scenario.
func (b *bench) took(who string, holds int) {
	if b.holds == nil {
		b.holds = map[string]int{}
	}
	b.holds[who] += holds
}

// countLeft adds the keys that are left on the masters after a round to the report, and removes them.
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
	}
	b.holds = nil
	return nil
}

// leftBehind waits up to a second until no lock keys remain, counts the remaining keys under prefix, and removes them.
// Lock keys end with suffix.
func (m *masters) leftBehind(ctx context.Context, prefix, suffix string) (r remains, err error) {
	for range 50 {
		if r, err = m.remains(ctx, prefix, suffix); err != nil || ctx.Err() != nil || r.locks == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return r, errors.Join(err, context.Cause(ctx), m.sweep(ctx, prefix))
}

// remains counts all keys with this prefix.
func (m *masters) remains(ctx context.Context, prefix, suffix string) (r remains, err error) {
	err = m.each(ctx, func(c redis.Conn) error {
		keys, err := scanKeys(c, prefix)
		r.keys += len(keys)
		for _, k := range keys {
			if strings.HasSuffix(k, suffix) && err == nil {
				var held bool
				if held, err = isLock(c, k); held {
					r.locks++
				}
			}
		}
		return errors.Join(err, r.weigh(c, keys))
	})
	return r, err
}

// isLock reports whether a key is that of a held lock. The library keeps the key of a free name, with the fence alone.
func isLock(c redis.Conn, key string) (bool, error) {
	fields, err := redis.Strings(c.Do("HKEYS", key))
	var other redis.Error
	if errors.As(err, &other) { // the key is not a hash
		return true, nil
	}
	return len(fields) > 0 && !slices.Equal(fields, []string{scripts.FieldFence}), err
}

// weigh adds the bytes and the longest remaining TTL of keys of one master. A key may have expired since it was
// listed.
func (r *remains) weigh(c redis.Conn, keys []string) error {
	var errs []error
	for _, k := range keys {
		errs = append(errs, c.Send("MEMORY", "USAGE", k), c.Send("PTTL", k))
	}
	errs = append(errs, c.Flush())
	for range keys {
		bytes, err := redis.Int64(c.Receive())
		if !errors.Is(err, redis.ErrNil) {
			errs = append(errs, err)
		}
		left, err := redis.Int64(c.Receive())
		errs = append(errs, err)
		r.bytes += bytes
		r.kept = max(r.kept, time.Duration(left)*time.Millisecond)
	}
	return errors.Join(errs...)
}

// scanKeys returns the keys of a master that begin with prefix, which must not contain pattern characters.
func scanKeys(c redis.Conn, prefix string) (all []string, err error) {
	for cursor := ""; cursor != "0" && err == nil; {
		var reply []any
		var page []string
		if reply, err = redis.Values(c.Do("SCAN", cmp.Or(cursor, "0"), "MATCH", prefix+"*", "COUNT", "1000")); err == nil {
			_, err = redis.Scan(reply, &cursor, &page)
		}
		all = append(all, page...)
	}
	return all, err
}
