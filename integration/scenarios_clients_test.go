package integration

import (
	"os"
	"time"

	"github.com/redlock-go/redlock/internal/must"
)

// Faults of the client processes.
var clientScenarios = []scenario{
	{name: "one process stopped past its TTL, one killed", short: true, fault: func(x *deployment) {
		stopped, killed := x.workers[0], x.workers[1]
		x.signal(stopped, stopSignal)
		x.replace(killed)
		x.wait(scenarioTTL + scenarioTTL/2)
		x.signal(stopped, continueSignal)
		x.wait(time.Second)
	}},
}

// replace kills a process of the workload and starts another one instead.
func (x *deployment) replace(w *client) {
	x.Helper()
	w.Kill()
	for i, other := range x.workers {
		if other == w {
			x.workers = append(x.workers[:i], x.workers[i+1:]...)
			break
		}
	}
	x.retired = append(x.retired, w)
	x.spawn(w.id + "'")
}

func (x *deployment) signal(w *client, s os.Signal) {
	x.Helper()
	must.Do(x, w.Cmd.Process.Signal(s))
}
