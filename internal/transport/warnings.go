package transport

import (
	"fmt"
	"strings"
)

// Warnings returns a sentence for each master that allows two holders (TwoHolders of [Config]), and for each made from
// a *redis.Pool with settings that have no effect. The list is usually empty. A Locker logs these warnings, and
// includes them in its own.
func (t *Transport) Warnings() (list []string) {
	for _, m := range *t.list.Load() {
		if m.cfg.failover != nil && m.cfg.failover.twoHold {
			list = append(list, fmt.Sprintf("pool: master %q: two holders are allowed: a lock may have two holders while a "+
				"partition isolates the master with some clients", m.Name))
		}
		if names := m.unused(); len(names) > 0 {
			list = append(list, fmt.Sprintf("pool: master %q: these fields of its *redis.Pool are ignored: %s; its dial "+
				"function makes the connections, which are kept open", m.Name, strings.Join(names, ", ")))
		}
	}
	return list
}

// unused returns the settings of m's *redis.Pool that have no effect.
func (m Master) unused() (names []string) {
	pool := m.foreign
	if pool == nil {
		return nil
	}
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"TestOnBorrow", pool.TestOnBorrow != nil}, {"TestOnBorrowContext", pool.TestOnBorrowContext != nil},
		{"MaxIdle", pool.MaxIdle != 0}, {"MaxActive", pool.MaxActive != 0}, {"IdleTimeout", pool.IdleTimeout != 0},
		{"Wait", pool.Wait}, {"MaxConnLifetime", pool.MaxConnLifetime != 0},
	} {
		if option.set {
			names = append(names, option.name)
		}
	}
	return names
}
