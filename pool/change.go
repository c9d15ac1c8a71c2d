package pool

import "slices"

// Name is what names m: host:port, the path of a socket, or the name given to [FromRedisPool]. Two masters of one name
// are the same. It contains no credentials.
func (m Master) Name() string { return m.name }

// Add makes masters known that were not there when the Pool was made, and returns the number of each. One whose name is
// known already keeps its number, and the options with which it was named first. The options of [New] hold for the new
// ones too. Like New it does not block, and fails, with an error that matches [ErrInvalid], before anything is dialled.
//
// A Pool never forgets a number: each name that is new, or has been retired, takes a further one.
func (p *Pool) Add(masters ...Master) (numbers []int, err error) {
	p.changeMu.Lock()
	defer p.changeMu.Unlock()
	if p.ended {
		return nil, ErrClosed
	}
	common := defaults()
	if err := common.apply(p.common); err != nil {
		return nil, err
	}
	configs := make([]config, len(masters))
	for i, m := range masters {
		if configs[i], err = m.settings(common); err != nil {
			return nil, err
		}
	}
	if err := distinct(masters); err != nil {
		return nil, err
	}
	for i, m := range masters {
		number, known := p.Find(m.name)
		if !known {
			number = p.begin(m, configs[i])
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// Find returns the number of the master of this name, and whether there is one that is not retired.
func (p *Pool) Find(name string) (number int, ok bool) {
	m := slices.IndexFunc(*p.list.Load(), func(m *master) bool { return m.name == name && !m.retired() })
	return m, m >= 0
}

// Retain counts one more user of a master, who gives it back by [Pool.Release].
func (p *Pool) Retain(i int) {
	p.changeMu.Lock()
	defer p.changeMu.Unlock()
	p.users[i]++
}

// Release counts one user less. With retire, and where that was the last one, the master is retired: its connections are
// closed, what is outstanding is answered with an error that matches [ErrRetired], as is every Send from here on, and what
// it is owed is forgotten. It does not block.
func (p *Pool) Release(i int, retire bool) {
	p.changeMu.Lock()
	defer p.changeMu.Unlock()
	if p.users[i]--; p.users[i] > 0 {
		return
	}
	delete(p.users, i)
	if retire {
		m := p.master(i)
		m.shut(ErrRetired)
		m.cancel()
		p.hub.retire(i)
	}
}

// active lists the masters that are not retired.
func (p *Pool) active() []*master {
	return slices.DeleteFunc(slices.Clone(*p.list.Load()), (*master).retired)
}

func (m *master) retired() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shutting != nil
}

// Err says what is wrong with how m was named; nil where nothing is. [New] and [Pool.Add] fail with it.
func (m Master) Err() error { return m.err }
