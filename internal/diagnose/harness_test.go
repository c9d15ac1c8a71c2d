package diagnose

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

const testPrefix = scripts.Prefix("diagnosetest")

// patience is the maximum time of a wait for a real server.
const patience = 20 * time.Second

// options returns the options of a client with the prefix of the tests.
func options() Options { return Options{Prefix: string(testPrefix)} }

// open connects to masters until the end of the test.
func open(t testing.TB, urls []string, opts ...pool.Option) *transport.Transport {
	t.Helper()
	p, err := pool.Open(urls, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return transport.Of(p)
}

// patient are the options for real servers.
func patient() []pool.Option {
	return []pool.Option{pool.WithTimeout(patience), pool.WithDialTimeout(patience)}
}

// found returns the findings about the masters.
func found(t testing.TB, p *transport.Transport) []redlockinfo.Finding {
	t.Helper()
	list, err := Masters(t.Context(), p, options())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// finding returns the findings whose topic (About) is topic.
func finding(t testing.TB, p *transport.Transport, topic string) (said []redlockinfo.Finding) {
	t.Helper()
	for _, f := range found(t, p) {
		if f.About == topic {
			said = append(said, f)
		}
	}
	return said
}

// startServer runs a server that allows DEBUG commands, and stops it at the end of the test. It needs -long.
func startServer(t testing.TB, args ...string) *redisproc.Server {
	t.Helper()
	if !long.Enabled() {
		t.Skip("needs -long: it starts servers")
	}
	return newServer(t, append([]string{"--enable-debug-command", "yes"}, args...)...)
}

// newServer runs a server on a free port of 127.0.0.1, and stops it at the end of the test.
func newServer(t testing.TB, args ...string) *redisproc.Server {
	t.Helper()
	return redistest.Test(t, 1, redisproc.Config{Args: args})[0]
}

// A fake is a server in this process. It answers INFO, and any other command with OK.
type fake struct {
	runID, extra string                    // extra are additional lines of INFO, which count instead of earlier ones
	refuseFunc   func(cmd []string) string // if set, returns an error reply, or ""
	silent       bool                      // whether the server never answers
}

func (f *fake) dial(context.Context, string, string) (net.Conn, error) {
	client, conn := net.Pipe()
	go func() {
		defer conn.Close()
		for r := bufio.NewReader(conn); ; {
			raw, cmd, err := redistest.ReadCommand(r)
			if err != nil || raw == "" {
				return
			}
			if f.silent {
				_, _ = io.Copy(io.Discard, conn)
				return
			}
			if _, err := io.WriteString(conn, f.reply(cmd)); err != nil {
				return
			}
		}
	}()
	return client, nil
}

func (f *fake) reply(cmd []string) string {
	if f.refuseFunc != nil {
		if text := f.refuseFunc(cmd); text != "" {
			return "-" + text + "\r\n"
		}
	}
	if cmd[0] != "INFO" {
		return "+OK\r\n"
	}
	text := "redis_version:7.0.15\r\nrun_id:" + f.runID + "\r\nmaster_replid2:" + strings.Repeat("0", 40) +
		"\r\nsecond_repl_offset:-1\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n" +
		fmt.Sprintf("server_time_usec:%d\r\n", time.Now().UnixMicro()) + f.extra
	return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
}

// A fakes is a list of masters that are called m0, m1, and so on.
type fakes []*fake

func newFakes(n int) (list fakes) {
	for i := range n {
		list = append(list, &fake{runID: fmt.Sprint("a", i)})
	}
	return list
}

func (list fakes) urls() (urls []string) {
	for i := range list {
		urls = append(urls, fmt.Sprint("redis://m", i))
	}
	return urls
}

func (list fakes) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var i int
	if _, err := fmt.Sscanf(addr, "m%d:", &i); err != nil {
		return nil, err
	}
	return list[i].dial(ctx, network, addr)
}
