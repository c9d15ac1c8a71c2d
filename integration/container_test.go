package integration

import (
	"context"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"
	"github.com/ory/dockertest/v3/docker"
)

// A container is a Master that runs in a container.
type container struct {
	engine        *dockerEngine
	id, name, url string
	host          string // its host name on the network of the containers
	network       string // id of the network
	address       string // its fixed address on the network; "" for any address
	setup         setup
}

func (c *container) Name() string { return c.name }
func (c *container) URL() string  { return c.url }

func (c *container) Peer() (host, port string) { return c.host, "6379" }

func (c *container) dialOptions() []redis.DialOption { return c.setup.dial }

// Pause freezes the container. It retries if the kernel cannot freeze the processes within the engine's time limit,
// which happens on a busy machine.
func (c *container) Pause(ctx context.Context) error {
	for {
		err := c.engine.pool.Client.PauseContainer(c.id)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "unable to freeze") {
			return err
		}
	}
}

func (c *container) Resume(context.Context) error { return c.engine.pool.Client.UnpauseContainer(c.id) }

func (c *container) Kill(ctx context.Context) error {
	err := c.engine.pool.Client.KillContainer(docker.KillContainerOptions{ID: c.id, Signal: docker.SIGKILL, Context: ctx})
	if err != nil {
		return fmt.Errorf("kill: %w", err)
	}
	_, err = c.engine.pool.Client.WaitContainerWithContext(c.id, ctx)
	return err
}

func (c *container) Start(ctx context.Context) error {
	if err := c.engine.pool.Client.StartContainerWithContext(c.id, nil, ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := awaitPing(ctx, c.url, c.setup.dial...); err != nil {
		return fmt.Errorf("%w; %s", err, c.state())
	}
	return nil
}

// state describes a container that does not answer: the engine's information, and the last output of the server.
func (c *container) state() string {
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	var b strings.Builder
	if i, err := c.engine.pool.Client.InspectContainerWithContext(c.id, ctx); err != nil {
		fmt.Fprintf(&b, "the container cannot be inspected: %v", err)
	} else {
		fmt.Fprintf(&b, "the container is %s (process %d)", i.State.String(), i.State.Pid)
		for name, n := range i.NetworkSettings.Networks {
			fmt.Fprintf(&b, ", on %s as %q", name, n.IPAddress)
		}
		fmt.Fprintf(&b, ", ports %v", i.NetworkSettings.Ports)
	}
	var said strings.Builder
	err := c.engine.pool.Client.Logs(docker.LogsOptions{
		Context: ctx, Container: c.id, OutputStream: &said, ErrorStream: &said, Stdout: true, Stderr: true, Tail: "5",
	})
	if err != nil {
		fmt.Fprintf(&b, "; its output cannot be read: %v", err)
	} else {
		fmt.Fprintf(&b, "; its output ends with %q", said.String())
	}
	return b.String()
}

// Cut disconnects the container from its network, which also disables the container's published port.
func (c *container) Cut(ctx context.Context) error {
	return c.engine.pool.Client.DisconnectNetwork(c.network,
		docker.NetworkConnectionOptions{Container: c.id, Context: ctx})
}

func (c *container) Join(ctx context.Context) error {
	err := c.engine.pool.Client.ConnectNetwork(c.network, docker.NetworkConnectionOptions{
		Container: c.id, EndpointConfig: c.endpoint(), Context: ctx,
	})
	if err != nil {
		return err
	}
	return awaitPing(ctx, c.url, c.setup.dial...)
}

// endpoint returns the settings with the container's fixed address on the network, or nil if it has none.
func (c *container) endpoint() *docker.EndpointConfig {
	if c.address == "" {
		return nil
	}
	return &docker.EndpointConfig{IPAMConfig: &docker.EndpointIPAMConfig{IPv4Address: c.address}}
}

// remove removes the container in any state. A frozen process does not handle signals, so remove first resumes the
// container. It ignores the error of a container that is not frozen.
func (c *container) remove() error {
	_ = c.engine.pool.Client.UnpauseContainer(c.id)
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	return ignoreMissing(c.engine.pool.Client.RemoveContainer(
		docker.RemoveContainerOptions{ID: c.id, Force: true, RemoveVolumes: true, Context: ctx}))
}
