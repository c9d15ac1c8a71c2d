package integration

import (
	"strings"
	"testing"

	"github.com/ory/dockertest/v3/docker"
)

// A network that a container uses cannot be removed for a reason: removal is retried until the container has gone, and
// not given up.
func TestANetworkInUseIsNotGivenUp(t *testing.T) {
	needContainers(t)
	list := masters(t, 1)
	user := list[0].(*container)
	session := engine.session + "1" // the session of a later run
	mine := func(s string) bool { return s == session }
	n, err := engine.pool.Client.CreateNetwork(docker.CreateNetworkOptions{Name: "redlock-test-" + session,
		Driver: "bridge", Labels: map[string]string{label: session}})
	if err != nil {
		t.Fatal(err)
	}
	to := docker.NetworkConnectionOptions{Container: user.id, Context: t.Context()}
	if err := engine.pool.Client.ConnectNetwork(n.ID, to); err != nil {
		t.Fatal(err)
	}
	miscounted, err := engine.sweepOnce(t.Context(), mine)
	if len(miscounted) > 0 || err == nil || !strings.Contains(err.Error(), "active endpoints") {
		t.Errorf("with a container on it: %q, %v", miscounted, err)
	}
	if left, err := engine.left(session, true); left == "" || err != nil {
		t.Errorf("with a container on it, left reports nothing: %v", err)
	}
	if err := engine.pool.Client.DisconnectNetwork(n.ID, to); err != nil {
		t.Fatal(err)
	}
	if err := engine.sweep(mine); err != nil {
		t.Error(err)
	}
	if left, err := engine.left(session, false); left != "" || err != nil {
		t.Errorf("%s, %v", left, err)
	}
}
