package integration

import (
	"slices"
	"testing"
)

// Every scenario, or the short set with -short.
func TestScenarios(t *testing.T) {
	t.Parallel()
	for i, sc := range slices.Concat(serverScenarios, linkScenarios, stateScenarios, rightsScenarios, restartScenarios, clientScenarios) {
		if testing.Short() && !sc.short {
			continue
		}
		sc.number = i + 1
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			sc.run(t)
		})
	}
}
