package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ory/dockertest/v3/docker"
)

// label is set on everything that a run makes. Its value identifies the run: host, process, start time.
const label = "redlock-test-session"

func newSession() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	host = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(host))
	return fmt.Sprintf("%s-%d-%d", host, os.Getpid(), time.Now().Unix())
}

// stale reports whether a session's process has ended. Sessions of other hosts are stale after an hour.
func stale(session string) bool {
	parts := strings.Split(session, "-")
	if len(parts) != 3 {
		return true
	}
	began, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || time.Since(time.Unix(began, 0)) > time.Hour {
		return true
	}
	own, _, _ := strings.Cut(newSession(), "-")
	pid, err := strconv.Atoi(parts[1])
	if err != nil || parts[0] != own {
		return err != nil
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return true
	}
	return errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// composeLabel is set by compose on everything that it makes. The tests name their projects by composePrefix and the
// session.
const (
	composeLabel  = "com.docker.compose.project"
	composePrefix = "redlock-test-"
)

// sessionOf returns the session in the labels of a container or network, and whether there is one.
func sessionOf(labels map[string]string) (string, bool) {
	if session, ok := labels[label]; ok {
		return session, true
	}
	return strings.CutPrefix(labels[composeLabel], composePrefix)
}

// sweep removes the containers, and then the networks, of the sessions for which which returns true. If another run is
// removing the same, sweep waits for that.
//
// If the engine refuses to remove a network without containers because of containers that it counts, sweep gives up
// after a while and logs that without an error. Engines count the containers of a network wrongly after one of them
// could not be started (seen with 20.10), until the engine is restarted.
func (e *dockerEngine) sweep(which func(session string) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*callBound)
	defer cancel()
	patient := time.Now().Add(miscountBound)
	for {
		miscounted, err := e.sweepOnce(ctx, which)
		if err == nil && len(miscounted) > 0 && time.Now().After(patient) {
			fmt.Fprintf(os.Stderr, "integration: left, since the engine says that containers are on them, and lists none: %s\n",
				strings.Join(miscounted, ", "))
			return nil
		}
		var busy *docker.Error
		conflict := errors.As(err, &busy) && (busy.Status == http.StatusConflict || busy.Status == http.StatusForbidden)
		if ctx.Err() != nil || !conflict && len(miscounted) == 0 {
			return err
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// sweepOnce also returns the networks that could not be removed although they have no containers.
func (e *dockerEngine) sweepOnce(ctx context.Context, which func(session string) bool) (miscounted []string,
	err error) {
	containers, err := e.ours(ctx, which)
	errs := []error{err}
	for _, c := range containers {
		errs = append(errs, (&container{engine: e, id: c.ID}).remove())
	}
	networks, err := e.ourNetworks(which)
	errs = append(errs, err)
	for _, n := range networks {
		err := ignoreMissing(e.pool.Client.RemoveNetwork(n.ID))
		if e.miscounts(n.ID, err) {
			miscounted = append(miscounted, n.Name)
			err = nil
		}
		errs = append(errs, err)
	}
	return miscounted, errors.Join(errs...)
}

// miscounts reports whether err refuses to remove a network because of containers that it does not have.
func (e *dockerEngine) miscounts(network string, err error) bool {
	var refused *docker.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		return false
	}
	info, err := e.pool.Client.NetworkInfo(network)
	return err == nil && len(info.Containers) == 0
}

// ours lists the containers, running or not, of the sessions for which which returns true.
func (e *dockerEngine) ours(ctx context.Context, which func(session string) bool) ([]docker.APIContainers, error) {
	var list []docker.APIContainers
	for _, l := range []string{label, composeLabel} {
		all, err := e.pool.Client.ListContainers(docker.ListContainersOptions{
			All: true, Filters: map[string][]string{"label": {l}}, Context: ctx,
		})
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			if session, ok := sessionOf(c.Labels); ok && which(session) {
				list = append(list, c)
			}
		}
	}
	return list, nil
}

func (e *dockerEngine) ourNetworks(which func(session string) bool) ([]docker.Network, error) {
	var list []docker.Network
	for _, l := range []string{label, composeLabel} {
		all, err := e.pool.Client.FilteredListNetworks(docker.NetworkFilterOpts{"label": {l: true}})
		if err != nil {
			return nil, err
		}
		for _, n := range all {
			if session, ok := sessionOf(n.Labels); ok && which(session) {
				list = append(list, n)
			}
		}
	}
	return list, nil
}

// closeDocker removes everything that this run has left, including its network, and closes the connections to the
// engine, which is not used afterwards.
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

// ignoreMissing drops errors that say that there is nothing to remove.
func ignoreMissing(err error) error {
	var container *docker.NoSuchContainer
	var network *docker.NoSuchNetwork
	if errors.As(err, &container) || errors.As(err, &network) {
		return nil
	}
	return err
}
