package integration

import (
	"slices"
	"testing"

	"github.com/redlock-go/redlock/internal/long"
)

// TestScenarios runs all scenarios, or only the short ones without -long.
func TestScenarios(t *testing.T) {
	t.Parallel()
	for i, sc := range slices.Concat(serverScenarios, linkScenarios, stateScenarios, rightsScenarios, restartScenarios,
		clientScenarios) {
		if !long.Enabled() && !sc.short {
			continue
		}
		sc.number = i + 1
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			sc.run(t)
		})
	}
}
