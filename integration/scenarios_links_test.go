package integration

import (
	"time"

	"github.com/redlock-go/redlock/internal/history"
)

// Faults of the network between the client processes and the masters.
var linkScenarios = []scenario{
	{name: "links of 20 ms ± 15, one of 300 ± 100", links: true, minority: true, fault: func(x *deployment) {
		for _, l := range x.links[:4] {
			l.add(slow(20, 15))
		}
		x.links[4].add(slow(300, 100))
		x.wait(3 * time.Second)
		x.clear()
	}},
	{name: "two links half-open", links: true, short: true, minority: true, fault: func(x *deployment) {
		for _, l := range x.links[:2] {
			l.add(swallow("downstream"))
		}
		x.wait(1500 * time.Millisecond)
		for _, l := range x.links[:2] {
			l.clear()
			l.add(swallow("upstream"))
		}
		x.wait(1500 * time.Millisecond)
		x.clear()
	}},
	{name: "all links as slow as a modem", links: true, fault: func(x *deployment) {
		for _, l := range x.links {
			l.add(modem("upstream", 7), modem("downstream", 7))
		}
		x.wait(3 * time.Second)
		x.clear()
	}},
	{name: "all links reset in the middle of replies", links: true, fault: func(x *deployment) {
		for i, l := range x.links {
			l.add(breakOff(12_000 + 997*i)...)
		}
		x.wait(3 * time.Second)
		x.clear()
	}},
}

// clear removes all disturbances, and ends the connections of the affected links. The report does not cover the time
// after that, because the end of these connections is not part of the fault.
func (x *deployment) clear() {
	x.ended = history.Stamp()
	for _, l := range x.links {
		l.clear()
	}
}
