package integration

import (
	"testing"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Check reports no problem on any supported version of the servers.
func TestCheckOfServerVersions(t *testing.T) {
	l := admitted(t, masters(t, 5))
	verdict := must.Get(admin.Of(l).Check(bounded(t)))(t)
	for _, f := range verdict.Findings {
		t.Log(f)
		if f.Severity > redlockinfo.Notice {
			t.Errorf("finding about a healthy master: %v", f)
		}
	}
}
