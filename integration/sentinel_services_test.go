package integration

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/ory/dockertest/v3/docker"
)

// Masters behind Sentinel, in containers. Sentinels report the addresses of the containers, not published ports, so
// this process must be able to reach those. The addresses do not change after restarts or disconnections.

// Settings of the servers and of the sentinels; docs/guide.md explains why the lag is 2 s below the down-after time.
const (
	replicasMaxLag = "2"
	downAfter      = "4000"
)

// A service is a master and two replicas behind three sentinels, which also monitor other services.
type service struct {
	name      string
	sentinels []*container
	master    *container // the initial master
	replicas  []Master
}

// url returns the URL of the service as one master of a pool.
func (s *service) url() string {
	hosts := make([]string, len(s.sentinels))
	for i, c := range s.sentinels {
		hosts[i] = hostPort(c.url)
	}
	return "redis+sentinel://" + strings.Join(hosts, ",") + "/" + s.name
}

// promoted reports whether a majority of the sentinels reports another master than the first.
func (s *service) promoted() bool {
	n := 0
	for _, c := range s.sentinels {
		addr, err := redis.Strings(ask(c, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.name))
		if err == nil && len(addr) == 2 && addr[0] != s.master.address {
			n++
		}
	}
	return n > len(s.sentinels)/2
}

// ask sends one command to a container, which may not answer.
func ask(c *container, command string, args ...any) (any, error) {
	conn, err := redis.DialURL(c.url, redis.DialConnectTimeout(callBound), redis.DialReadTimeout(callBound))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Do(command, args...)
}

// services starts a service for each name, and the sentinels of all.
func services(t *testing.T, names ...string) []*service {
	t.Helper()
	n := fixedNetwork(t)
	sentinels := []*container{n.container("sentinel-1"), n.container("sentinel-2"), n.container("sentinel-3")}
	servers, watchers := make(map[*container][]string), make(map[*container][]string)
	watch := []string{"protected-mode no", "port 6379"}
	list := make([]*service, len(names))
	for i, name := range names {
		s := &service{name: name, sentinels: sentinels, master: n.container(name + "-1")}
		list[i] = s
		command := append(slices.Clone(serverCommand), "--repl-diskless-sync-delay", "0",
			"--min-replicas-to-write", "2", "--min-replicas-max-lag", replicasMaxLag)
		servers[s.master] = command
		for _, number := range []string{"-2", "-3"} {
			r := n.container(name + number)
			servers[r] = append(slices.Clone(command), "--replicaof", s.master.address+" 6379")
			s.replicas = append(s.replicas, r)
		}
		watch = append(watch, fmt.Sprintf("sentinel monitor %s %s 6379 2", name, s.master.address),
			fmt.Sprintf("sentinel down-after-milliseconds %s %s", name, downAfter),
			fmt.Sprintf("sentinel failover-timeout %s 10000", name))
	}
	t.Cleanup(func() { removeAll(t, n.all) })
	startAll(t, servers, "")
	x := &deployment{T: t}
	for _, s := range list {
		x.eventually(2*hang, s.unreplicated)
	}
	for _, c := range sentinels {
		watchers[c] = []string{"redis-server", sentinelFile, "--sentinel"}
	}
	startAll(t, watchers, strings.Join(watch, "\n"))
	for _, s := range list {
		x.eventually(2*hang, s.unwatched)
	}
	return list
}

// unreplicated returns a message if the replicas are not in sync with their master.
func (s *service) unreplicated() string {
	info, err := redis.String(ask(s.master, "INFO", "replication"))
	if strings.Count(info, "state=online") == len(s.replicas) {
		return ""
	}
	return fmt.Sprintf("the replicas of %s are not in step: %v %s", s.name, err, info)
}

// unwatched returns a message if a sentinel does not know the replicas and the other sentinels.
func (s *service) unwatched() string {
	for _, c := range s.sentinels {
		said, err := redis.StringMap(ask(c, "SENTINEL", "MASTER", s.name))
		if said["num-other-sentinels"] != "2" || said["num-slaves"] != "2" {
			return fmt.Sprintf("%s does not know all of %s: %v %v", c.name, s.name, err, said)
		}
	}
	return ""
}

// startAll starts containers concurrently, each with a sentinel file if text is not empty.
func startAll(t *testing.T, commands map[*container][]string, text string) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for c, command := range commands {
		wg.Go(func() {
			if err := c.begin(t.Context(), command, text); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%s: %w", c.name, err))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// sentinelFile is the configuration file of a sentinel, to which the sentinel also writes.
const sentinelFile = "/tmp/sentinel.conf"

// begin makes the container and starts it. It publishes no port, and runs as the user that owns the file.
func (c *container) begin(ctx context.Context, command []string, text string) error {
	made, err := c.engine.pool.Client.CreateContainer(docker.CreateContainerOptions{
		Name: c.host, Context: ctx,
		Config: &docker.Config{
			Image: c.engine.image, Entrypoint: command[:1], Cmd: command[1:], User: "0:0",
			Env: []string{"LC_ALL=C"}, Labels: map[string]string{label: c.engine.session},
		},
		HostConfig: &docker.HostConfig{NetworkMode: c.network, RestartPolicy: docker.NeverRestart()},
		NetworkingConfig: &docker.NetworkingConfig{
			EndpointsConfig: map[string]*docker.EndpointConfig{c.network: c.endpoint()},
		},
	})
	if err != nil {
		return err
	}
	c.id = made.ID
	if text != "" {
		if err := c.upload(ctx, text); err != nil {
			return err
		}
	}
	return c.Start(ctx)
}

// upload writes the sentinel's file.
func (c *container) upload(ctx context.Context, text string) error {
	var file bytes.Buffer
	w := tar.NewWriter(&file)
	if err := w.WriteHeader(&tar.Header{Name: path.Base(sentinelFile), Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return c.engine.pool.Client.UploadToContainer(c.id, docker.UploadToContainerOptions{
		InputStream: &file, Path: path.Dir(sentinelFile), Context: ctx,
	})
}

// A subnet is a network on which each container has a fixed address.
type subnet struct {
	network string // id
	last    netip.Addr
	all     []*container // containers with an address
}

// container assigns the next address to a container, which is not created yet.
func (n *subnet) container(name string) *container {
	n.last = n.last.Next()
	c := &container{engine: engine, name: name, network: n.network, address: n.last.String()}
	c.host, c.url = engine.fullName(name), "redis://"+c.address+":6379"
	n.all = append(n.all, c)
	return c
}

// fixedNetwork makes a network for one test, and skips the test if this process cannot reach its containers.
func fixedNetwork(t *testing.T) *subnet {
	t.Helper()
	var id string
	var chosen docker.IPAMConfig
	var err error
	for range 5 { // another process may take the subnet first
		if id, chosen, err = engine.createFixedNetwork(t.Context()); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ignoreMissing(engine.pool.Client.RemoveNetwork(id)); err != nil {
			t.Errorf("network of the sentinels: %v", err)
		}
	})
	gateway, err := netip.ParseAddr(chosen.Gateway)
	if err != nil {
		t.Fatal(err)
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(own, func(a net.Addr) bool { return strings.HasPrefix(a.String(), gateway.String()+"/") }) {
		t.Skipf("needs containers that are reached by their own addresses: this machine has no %v", gateway)
	}
	return &subnet{network: id, last: gateway}
}

// createFixedNetwork makes a network with fixed addresses. The engine allows them only if the subnet is given, so
// createFixedNetwork lets it choose a subnet for a first network, and requests the same one for a second.
func (e *dockerEngine) createFixedNetwork(ctx context.Context) (id string, chosen docker.IPAMConfig, err error) {
	client := e.pool.Client
	o := docker.CreateNetworkOptions{
		Name: e.fullName("sentinel"), Driver: "bridge", Context: ctx, Labels: map[string]string{label: e.session},
	}
	first, err := client.CreateNetwork(o)
	if err != nil {
		return "", chosen, err
	}
	info, err := client.NetworkInfo(first.ID)
	if err := errors.Join(err, client.RemoveNetwork(first.ID)); err != nil {
		return "", chosen, err
	}
	chosen = info.IPAM.Config[0]
	o.IPAM = &docker.IPAMOptions{Config: []docker.IPAMConfig{chosen}}
	second, err := client.CreateNetwork(o)
	if err != nil {
		return "", chosen, fmt.Errorf("%+v: %w", chosen, err)
	}
	return second.ID, chosen, nil
}
