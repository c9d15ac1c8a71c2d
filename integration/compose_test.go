package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// compose returns the commands of the installed compose tools: the plugin of docker, and the older program
// docker-compose.
func compose() (tools [][]string) {
	for _, tool := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		if exec.Command(tool[0], append(slices.Clone(tool[1:]), "version")...).Run() == nil {
			tools = append(tools, tool)
		}
	}
	return tools
}

// With each installed compose tool, docker-compose.yml starts five healthy masters on which the steps of the guide
// work.
func TestComposeGivesFiveMasters(t *testing.T) {
	needContainers(t)
	tools := compose()
	if tools == nil {
		t.Skip("needs docker-compose, or the compose plugin of docker")
	}
	for _, tool := range tools {
		t.Run(strings.Join(tool, " "), func(t *testing.T) { composed(t, tool) })
	}
}

func composed(t *testing.T, tool []string) {
	version := must.Get(exec.Command(tool[0], append(slices.Clone(tool[1:]), "version")...).Output())(t)
	t.Logf("%.60s", version)
	root := must.Get(filepath.Abs(".."))(t)
	ports := freePorts(t)
	run := func(ctx context.Context, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, tool[0], append(slices.Clone(tool[1:]), args...)...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "COMPOSE_PROJECT_NAME="+composePrefix+engine.session, "REDLOCK_PORTS="+ports,
			"REDLOCK_IMAGE="+engine.image)
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return out, err
	}
	t.Cleanup(func() {
		if _, err := run(context.Background(), "down", "-t", "0"); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	up := []string{"up", "-d"}
	if len(tool) == 2 { // docker-compose of before 2021 does not wait
		up = append(up, "--wait")
	}
	must.Get(run(ctx, up...))(t)
	var addresses []string
	for i := 1; i <= 5; i++ {
		addresses = append(addresses, fmt.Sprintf("redis://127.0.0.1:%s%d", ports, i))
	}
	for _, u := range addresses {
		must.Do(t, awaitPing(ctx, u))
	}
	allHealthy(t)
	lockOnce(ctx, t, addresses)
}

// freePorts finds five free ports that differ only in their last digit, from 1 to 5, and returns their common
// prefix.
func freePorts(t *testing.T) string {
	t.Helper()
	for range 50 {
		port := must.Get(redisproc.FreePort())(t)
		free := true
		for i := 1; i <= 5 && free; i++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d%d", port/10, i))
			if free = err == nil; free {
				free = l.Close() == nil
			}
		}
		if free {
			return fmt.Sprint(port / 10)
		}
	}
	t.Fatal("found no five free ports that differ only in their last digit, from 1 to 5")
	return ""
}

// allHealthy waits until all containers of the project are healthy.
func allHealthy(t *testing.T) {
	t.Helper()
	x := &deployment{T: t}
	redistest.Await(x, hang, func() string {
		list := must.Get(engine.ours(t.Context(), func(s string) bool { return s == engine.session }))(t)
		healthy := 0
		for _, c := range list {
			if c.Labels[composeLabel] == composePrefix+engine.session && strings.Contains(c.Status, "(healthy)") {
				healthy++
			}
		}
		if healthy != 5 {
			return fmt.Sprintf("%d masters are healthy, want 5", healthy)
		}
		return ""
	})
}

// lockOnce follows the steps of the guide on new masters.
func lockOnce(ctx context.Context, t *testing.T, addresses []string) {
	t.Helper()
	p, err := pool.Open(addresses)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l, err := redlock.New(p)
	if err != nil {
		t.Fatal(err)
	}
	err = admin.Of(l).Admit(ctx)
	if err == nil {
		err = l.Do(ctx, "orders:42", func(ctx context.Context, _ *redlock.Lock) error { return ctx.Err() })
	}
	if err := errors.Join(err, l.Close()); err != nil {
		t.Error(err)
	}
}
