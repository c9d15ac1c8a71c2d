package integration

import "time"

// Faults in which all masters are restarted or crash, one after another.
var restartScenarios = []scenario{
	{name: "all five restarted empty, one after the other", minority: true, fault: func(x *deployment) {
		for _, m := range x.list {
			each(x, Master.Kill, m)
			x.wait(100 * time.Millisecond)
			each(x, Master.Start, m)
			x.voting()
		}
	}},
}
