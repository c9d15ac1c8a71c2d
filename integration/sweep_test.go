package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ory/dockertest/v3/docker"
)

// label is on everything that a run makes. Its value tells the run: host, process, time of start.
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

// stale reports whether a session's process has ended. Those of other hosts are given an hour.
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

// sweep removes the containers, and then the networks, of the sessions that which names.
func (e *dockerEngine) sweep(which func(session string) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*callBound)
	defer cancel()
	containers, err := e.labelled(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range containers {
		if which(c.Labels[label]) {
			errs = append(errs, (&container{engine: e, id: c.ID}).remove())
		}
	}
	networks, err := e.pool.Client.FilteredListNetworks(docker.NetworkFilterOpts{"label": {label: true}})
	errs = append(errs, err)
	for _, n := range networks {
		if which(n.Labels[label]) {
			errs = append(errs, ignoreMissing(e.pool.Client.RemoveNetwork(n.ID)))
		}
	}
	return errors.Join(errs...)
}

func (e *dockerEngine) labelled(ctx context.Context) ([]docker.APIContainers, error) {
	return e.pool.Client.ListContainers(docker.ListContainersOptions{
		All: true, Filters: map[string][]string{"label": {label}}, Context: ctx,
	})
}

// containersLeft counts the containers of this run, 0 where it has no engine.
func containersLeft() (int, error) {
	if engine == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	list, err := engine.labelled(ctx)
	n := 0
	for _, c := range list {
		if c.Labels[label] == engine.session {
			n++
		}
	}
	return n, err
}

// closeDocker removes whatever this run has left, its network included, and closes the connections to the engine.
func closeDocker() error {
	if engine == nil {
		return nil
	}
	defer engine.pool.Client.HTTPClient.CloseIdleConnections()
	return engine.sweep(func(session string) bool { return session == engine.session })
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
