package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ory/dockertest/v3/docker"
)

// label is the key of a label on every container and network that a run creates. The value of the label is the session
// of the run.
const label = "redlock-test-session"

// newSession returns a name for the session of this run: the start of the run in seconds, and a random number.
func newSession() string { return fmt.Sprintf("%d-%08x", time.Now().Unix(), rand.Uint32()) }

// stale reports whether a session began more than an hour ago. Such a session has leftovers only if its reaper was
// killed, too.
func stale(session string) bool {
	first, _, _ := strings.Cut(session, "-")
	began, err := strconv.ParseInt(first, 10, 64)
	return err != nil || time.Since(time.Unix(began, 0)) > time.Hour
}

// composeLabel is set by compose on everything that it creates. The projects of the tests are named by composePrefix
// and the session.
const (
	composeLabel  = "com.docker.compose.project"
	composePrefix = "redlock-test-"
)

// sessionOf returns the session in the labels of a container or network, and reports whether there is one.
func sessionOf(labels map[string]string) (string, bool) {
	if session, ok := labels[label]; ok {
		return session, true
	}
	return strings.CutPrefix(labels[composeLabel], composePrefix)
}

// sweep removes the containers, and then the networks, of the sessions for which which returns true. If another run is
// removing the same containers or networks, sweep waits for it. If the engine refuses to remove a network, sweep gives
// up after networkBound and logs a message: an engine may report wrong numbers of containers on a network after a
// container could not be started (seen with 20.10).
func (e *dockerEngine) sweep(which func(session string) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*callBound)
	defer cancel()
	for patient := time.Now().Add(networkBound); ; pause(ctx, 50*time.Millisecond) {
		var refused *docker.Error
		err := e.removeContainers(ctx, which)
		networks := e.removeNetworks(which)
		busy := errors.As(errors.Join(err, networks), &refused) &&
			(refused.Status == http.StatusConflict || refused.Status == http.StatusForbidden)
		switch {
		case err == nil && busy && time.Now().After(patient):
			fmt.Fprintln(os.Stderr, "integration: cannot remove a network:", networks)
			return nil
		case !busy || ctx.Err() != nil:
			return errors.Join(err, networks)
		}
	}
}

func (e *dockerEngine) removeContainers(ctx context.Context, which func(session string) bool) error {
	containers, err := e.ours(ctx, which)
	errs := []error{err}
	for _, c := range containers {
		errs = append(errs, (&container{engine: e, id: c.ID}).remove())
	}
	return errors.Join(errs...)
}

func (e *dockerEngine) removeNetworks(which func(session string) bool) error {
	networks, err := e.pool.Client.ListNetworks()
	errs := []error{err}
	for _, n := range networks {
		if session, ok := sessionOf(n.Labels); ok && which(session) {
			errs = append(errs, ignoreMissing(e.pool.Client.RemoveNetwork(n.ID)))
		}
	}
	return errors.Join(errs...)
}

// ours returns the containers, running or not, of the sessions for which which returns true.
func (e *dockerEngine) ours(
	ctx context.Context, which func(session string) bool,
) (list []docker.APIContainers, err error) {
	all, err := e.pool.Client.ListContainers(docker.ListContainersOptions{All: true, Context: ctx})
	for _, c := range all {
		if session, ok := sessionOf(c.Labels); ok && which(session) {
			list = append(list, c)
		}
	}
	return list, err
}

// closeDocker removes everything that this run has created, including its network. It closes the connections to the
// engine, which must not be used afterwards.
func closeDocker() error {
	if engine == nil {
		return nil
	}
	e := engine
	engine = nil
	defer e.pool.Client.HTTPClient.CloseIdleConnections()
	err := e.sweep(func(session string) bool { return session == e.session })
	return errors.Join(err, theReaper.end())
}

// ignoreMissing returns nil for errors that say that there is nothing to remove, and all other errors unchanged.
func ignoreMissing(err error) error {
	var container *docker.NoSuchContainer
	var network *docker.NoSuchNetwork
	if errors.As(err, &container) || errors.As(err, &network) {
		return nil
	}
	return err
}
