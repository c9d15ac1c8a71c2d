package main

import "github.com/redlock-go/redlock/redlock/redlocktest"

// A memory is a set of in-memory masters that listen on loopback.
type memory struct {
	set  *redlocktest.Masters
	list []string
}

func newMemory(n int) (*memory, error) {
	set := redlocktest.New(n)
	list, err := set.Listen()
	if err != nil {
		set.Close()
		return nil, err
	}
	return &memory{set, list}, nil
}

func (m *memory) urls() []string { return m.list }

func (m *memory) close() { m.set.Close() }

// connections counts those that each master has, by master.
func (m *memory) connections() []int {
	counts := make([]int, m.set.N())
	for i := range counts {
		counts[i] = m.set.Master(i).Connections()
	}
	return counts
}

// keys lists the keys of all masters together.
func (m *memory) keys() (all []string) {
	for i := range m.set.N() {
		all = append(all, m.set.Master(i).Keys()...)
	}
	return all
}
