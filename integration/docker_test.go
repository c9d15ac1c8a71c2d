package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
)

const (
	defaultImage = "redis:8"
	debianImage  = "redlock-test/redis:8"     // made by image/debian.sh
	localImage   = "redlock-test/redis:local" // made by image/build.sh
	pullBound    = time.Minute
	callBound    = 2 * time.Minute
	// networkBound limits the time to retry the removal of a network while the engine reports containers on it.
	networkBound = 5 * time.Second
	redisPort    = "6379/tcp"
)

// engine is the Docker engine of this run, or nil if none is used.
var engine *dockerEngine

type dockerEngine struct {
	pool    *dockertest.Pool
	image   string
	network string // id of the network
	session string // value of the label
	seq     int
	mu      sync.Mutex // guards seq
}

func dockerBackend() (*backend, error) {
	pool, err := dockertest.NewPool("")
	if err != nil {
		return nil, fmt.Errorf("no Docker engine: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := pool.Client.PingWithContext(ctx); err != nil {
		return nil, fmt.Errorf("no Docker engine: %w", err)
	}
	engine = &dockerEngine{pool: pool, session: newSession()}
	if err := engine.prepare(); err != nil { // fails if there is no image, for example
		return nil, errors.Join(err, closeDocker())
	}
	return &backend{name: "containers of " + engine.image, start: engine.start}, nil
}

// prepare finds or pulls the image, removes leftovers of earlier runs, and creates the network.
func (e *dockerEngine) prepare() (err error) {
	if e.image, err = e.chooseImage(); err != nil {
		return err
	}
	if err := e.sweep(stale); err != nil {
		return fmt.Errorf("cannot remove the leftovers of an earlier run: %w", err)
	}
	if err := startReaper(e.session); err != nil {
		return err
	}
	return e.createNetwork()
}

// chooseImage returns an image. It prefers a present image to one that must be pulled.
func (e *dockerEngine) chooseImage() (string, error) {
	candidates := []string{defaultImage, debianImage, localImage}
	if image := os.Getenv("REDLOCK_TEST_IMAGE"); image != "" {
		candidates = []string{image}
	}
	for _, image := range candidates {
		if _, err := e.pool.Client.InspectImage(image); err == nil {
			return image, nil
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), pullBound)
	defer cancel()
	repository, tag := splitImage(candidates[0])
	err := e.pool.Client.PullImage(docker.PullImageOptions{Repository: repository, Tag: tag, Context: ctx},
		docker.AuthConfiguration{})
	if err != nil {
		return "", fmt.Errorf("no image: %s is not present and cannot be pulled (integration/image/debian.sh and build.sh "+
			"make one without a registry): %w", candidates[0], err)
	}
	return candidates[0], nil
}

// splitImage splits the name of an image at its tag. The colon before a registry's port does not start a tag.
func splitImage(image string) (repository, tag string) {
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		return image[:i], image[i+1:]
	}
	return image, "latest"
}

func (e *dockerEngine) createNetwork() error {
	n, err := e.pool.CreateNetwork("redlock-test-"+e.session, func(c *docker.CreateNetworkOptions) {
		c.Labels = map[string]string{label: e.session}
	})
	if err != nil {
		return fmt.Errorf("cannot create a network: %w", err)
	}
	e.network = n.Network.ID
	return nil
}

// start creates n containers concurrently, and removes them at the end of the test.
func (e *dockerEngine) start(t testing.TB, n int, s setup) []Master {
	t.Helper()
	made, errs := make([]*container, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { made[i], errs[i] = e.startOne(t.Context(), fmt.Sprintf("master-%d", i+1), s) })
	}
	wg.Wait()
	t.Cleanup(func() { removeAll(t, made) })
	must.Do(t, errors.Join(errs...))
	list := make([]Master, n)
	for i, c := range made {
		list[i] = c
	}
	return list
}

// removeAll removes the containers of a test. An element is nil if its container was not created.
func removeAll(t testing.TB, made []*container) {
	var wg sync.WaitGroup
	for _, c := range made {
		if c != nil {
			wg.Go(func() {
				if err := c.remove(); err != nil {
					t.Errorf("the container %s cannot be removed: %v", c.name, err)
				}
			})
		}
	}
	wg.Wait()
}

// startOne starts a container with a fixed published port, which remains the same after a restart. If another
// process takes the port first, startOne uses another port.
func (e *dockerEngine) startOne(ctx context.Context, name string, s setup) (*container, error) {
	var err error
	for range 5 {
		var c *container
		if c, err = e.run(name, s); err == nil {
			if err = awaitPing(ctx, c.URL(), s.dial...); err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			return c, err
		}
		if !strings.Contains(err.Error(), "port is already allocated") &&
			!strings.Contains(err.Error(), "address already in use") {
			break
		}
	}
	return nil, fmt.Errorf("%s: %w", name, err)
}

// serverCommand is the beginning of the command line of each master. The arguments of its setup follow.
var serverCommand = []string{
	"redis-server", "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction",
	"--protected-mode", "no", // the server listens on the container's network, not only on loopback
}

// fullName returns a name that no other container has.
func (e *dockerEngine) fullName(name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seq++
	return fmt.Sprintf("redlock-test-%s-%d-%s", e.session, e.seq, name)
}

func (e *dockerEngine) run(name string, s setup) (*container, error) {
	port, err := redisproc.FreePort()
	if err != nil {
		return nil, err
	}
	full := e.fullName(name)
	c := &container{
		engine: e, name: name, host: full, network: e.network, setup: s, url: "redis://127.0.0.1:" + strconv.Itoa(port),
	}
	cmd := slices.Clone(serverCommand)
	if s.tls {
		cmd = append(cmd, "--port", "0", "--tls-port", "6379")
		c.url = "rediss://127.0.0.1:" + strconv.Itoa(port)
	}
	repository, tag := splitImage(e.image)
	r, err := e.pool.RunWithOptions(&dockertest.RunOptions{
		Name: full, Repository: repository, Tag: tag, NetworkID: e.network,
		Cmd:          append(cmd, s.args...),
		Env:          []string{"LC_ALL=C"},
		Labels:       map[string]string{label: e.session},
		ExposedPorts: []string{redisPort},
		PortBindings: map[docker.Port][]docker.PortBinding{redisPort: {{HostIP: "127.0.0.1", HostPort: strconv.Itoa(port)}}},
	}, func(h *docker.HostConfig) {
		h.PublishAllPorts = false
		h.RestartPolicy = docker.NeverRestart()
		if s.dir != "" {
			h.Binds = []string{s.dir + ":" + s.dir + ":ro"}
		}
	})
	if err != nil {
		// RunWithOptions leaves a container behind if the container was created but could not be started.
		return nil, errors.Join(err, ignoreMissing(e.pool.Client.RemoveContainer(docker.RemoveContainerOptions{ID: full,
			Force: true, RemoveVolumes: true})))
	}
	c.id = r.Container.ID
	return c, nil
}
