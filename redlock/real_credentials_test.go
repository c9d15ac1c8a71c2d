package redlock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/redlock"
)

// The connections of a Locker have its label and its epoch as their name in CLIENT LIST.
func TestConnectionsHaveTheLabelAsTheirName(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 1)
	locker(t, f.dial(), redlock.WithOwner("web 1/17"))
	eventually(t, hang, func() string {
		if list := fmt.Sprintf("%s", f.do(0, "CLIENT", "LIST")); !strings.Contains(list, " name=web-1/17;epoch=0 ") {
			return list
		}
		return ""
	})
}
