//go:build linux

package storetest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// patience is the time limit of every wait.
const patience = 120 * time.Second

// A side is one side of the network: a network namespace, or "" for the loopback interface.
type side struct{ space, ip string }

var loopback = side{"", "127.0.0.1"}

var networks atomic.Int32

// apart creates two sides with a link between them. cut(true) cuts the link, and cut(false) restores it.
func apart(t *testing.T) (left, right side, cut func(down bool)) {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and iproute2 to create network namespaces")
	}
	n := fmt.Sprintf("rl%d-%d", os.Getpid(), networks.Add(1))
	left, right = side{n + "a", "10.213.0.1"}, side{n + "b", "10.213.0.2"}
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			if said := string(out); strings.Contains(said, "not permitted") || strings.Contains(said, "not supported") ||
				strings.Contains(said, "Unknown device") {
				t.Skipf("needs the right to create network namespaces, and a kernel with bridges: %s", out)
			}
			t.Fatalf("the command ip %v failed: %v: %s", args, err, out)
		}
	}
	for _, space := range []string{left.space, right.space, n} { // the last one contains the switch between the sides
		run("netns", "add", space)
		t.Cleanup(func() { run("netns", "del", space) })
		run("-n", space, "link", "set", "lo", "up")
	}
	run("-n", n, "link", "add", "switch", "type", "bridge")
	run("-n", n, "link", "set", "switch", "up")
	for _, s := range []side{left, right} {
		port := "to" + s.ip[len(s.ip)-1:]
		run("link", "add", "net", "netns", s.space, "type", "veth", "peer", "name", port, "netns", n)
		run("-n", s.space, "addr", "add", s.ip+"/24", "dev", "net")
		run("-n", s.space, "link", "set", "net", "up")
		run("-n", n, "link", "set", port, "master", "switch", "up")
	}
	// The interfaces stay up, so packets are lost without any notification.
	return left, right, func(down bool) {
		if down {
			run("-n", n, "link", "set", "to1", "nomaster")
		} else {
			run("-n", n, "link", "set", "to1", "master", "switch")
		}
	}
}

// command returns a command that runs on side s and is killed when the test process ends.
func (s side) command(name string, args ...string) *exec.Cmd {
	if s.space != "" {
		args = append([]string{"netns", "exec", s.space, name}, args...)
		name = "ip"
	}
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return cmd
}

// start runs cmd until the test ends. The thread that starts the child also waits for it, because the child gets its
// death signal when this thread ends.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	done, begun := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		begun <- err
		if err == nil {
			_ = cmd.Wait() // the process was killed
		}
	}()
	must.Do(t, <-begun)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
}

// A server is a master, a replica or a sentinel.
type server struct {
	*redistest.Server
	at side
}

// newServer starts a server with these lines in its configuration file. If the first one is about sentinels, the server
// is a sentinel.
func newServer(t *testing.T, at side, lines ...string) *server {
	t.Helper()
	cfg := redisproc.Config{
		Host: at.ip, File: append([]string{"protected-mode no", "repl-diskless-sync-delay 0"}, lines...),
		Sentinel: strings.HasPrefix(lines[0], "sentinel"),
	}
	if at.space != "" {
		cfg.Run = []string{"ip", "netns", "exec", at.space}
	}
	return &server{redistest.Start(t, cfg), at}
}

// do sends a command to the server, which may be down or hang, and returns the reply.
func (s *server) do(args ...string) (string, error) {
	c, err := redis.Dial("unix", s.Unix(), redis.DialReadTimeout(time.Second))
	if err != nil {
		return "", err
	}
	defer c.Close()
	list := make([]any, len(args)-1)
	for i := range list {
		list[i] = args[1+i]
	}
	reply, err := c.Do(args[0], list...)
	if texts, bad := redis.Strings(reply, err); bad == nil {
		return strings.Join(texts, "\n"), nil
	}
	if text, bad := redis.String(reply, err); bad == nil {
		return text, nil
	}
	return fmt.Sprint(reply), err
}

// A service is a master with two replicas, and three sentinels that monitor the master.
type service struct {
	servers, sentinels []*server // the first server is the initial master
}

// newService starts the initial master on the side first, and all other servers on the side rest.
func newService(t *testing.T, first, rest side, settings ...string) *service {
	t.Helper()
	s := &service{servers: []*server{newServer(t, first, append(settings, "")...)}}
	master := s.servers[0]
	of := fmt.Sprintf("replicaof %s %s", master.at.ip, master.Port())
	for range 2 {
		s.servers = append(s.servers, newServer(t, rest, append(settings, of)...))
	}
	redistest.Eventually(t, "both replicas are in sync", func() bool {
		info, _ := master.do("INFO", "replication")
		return strings.Count(info, "state=online") == 2
	})
	for range 3 {
		s.sentinels = append(s.sentinels, newServer(t, rest,
			fmt.Sprintf("sentinel monitor job %s %s 2", master.at.ip, master.Port()),
			"sentinel down-after-milliseconds job 5000", "sentinel failover-timeout job 20000"))
	}
	redistest.Eventually(t, "the sentinels know each other and the replicas", func() bool {
		for _, sentinel := range s.sentinels {
			said, _ := sentinel.do("SENTINEL", "MASTER", "job")
			if fields := strings.Fields(said); !after(fields, "num-other-sentinels", "2") || !after(fields, "num-slaves", "2") {
				return false
			}
		}
		return true
	})
	return s
}

// after reports whether key is followed by value in fields.
func after(fields []string, key, value string) bool {
	for i := range len(fields) - 1 {
		if fields[i] == key {
			return fields[i+1] == value
		}
	}
	return false
}

// stops lists the settings that make a master reject writes if its replicas do not answer. They fit the
// down-after-milliseconds of newService, 5000.
var stops = []string{"min-replicas-to-write 2", "min-replicas-max-lag 3"}

func (s *service) url(query string) string {
	var hosts []string
	for _, sentinel := range s.sentinels {
		hosts = append(hosts, sentinel.Addr())
	}
	return "redis+sentinel://" + strings.Join(hosts, ",") + "/job" + query
}

// promoted waits until the first sentinel reports a master other than the initial one.
func (s *service) promoted(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, "a replica is promoted", func() bool {
		said, err := s.sentinels[0].do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "job")
		return err == nil && said != "" && !strings.Contains(said, s.servers[0].Port())
	})
}

// A process is a client process that acquires locks.
type process struct {
	name     string
	stdin    io.Closer
	admitted chan struct{}
	done     chan struct{}

	mu    sync.Mutex
	holds []*history.Hold
	said  []string
}

// run starts a client on one side. If admit is set, the client first admits the masters, and run waits for that.
func run(t *testing.T, name string, at side, admit bool, urls ...string) *process {
	t.Helper()
	exe := must.Get(os.Executable())(t)
	word := "join"
	if admit {
		word = "admit"
	}
	cmd := at.command(exe, word)
	cmd.Env = append(os.Environ(), clientEnv+"="+strings.Join(urls, " "))
	stdin := must.Get(cmd.StdinPipe())(t)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	p := &process{name: name, stdin: stdin, admitted: make(chan struct{}), done: make(chan struct{})}
	start(t, cmd)
	_ = in.Close() // the child has its own copy
	go p.read(out)
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Logf("%s printed:\n%s", name, strings.Join(p.said[max(0, len(p.said)-30):], "\n"))
		}
	})
	if admit {
		select {
		case <-p.admitted:
		case <-time.After(patience):
			t.Fatal("the masters were not admitted")
		}
	}
	return p
}

// pair starts two clients that acquire the same locks, and waits until each client has held each lock. The first client
// admits the masters.
func pair(t *testing.T, left, right side, urls ...string) (a, b *process) {
	t.Helper()
	a, b = run(t, "a", left, true, urls...), run(t, "b", right, false, urls...)
	holdsAfter(t, time.Now(), a)
	holdsAfter(t, time.Now(), b)
	return a, b
}

// judged stops the clients and checks their holds. It fails the test if a lock had two holders at the same time, or if
// a token did not increase.
func judged(t *testing.T, clients ...*process) verdict {
	t.Helper()
	for _, p := range clients {
		p.stop()
	}
	v := judge(clients...)
	v.mustExclude(t)
	return v
}

// stop ends the client and waits for its last line of output.
func (p *process) stop() {
	_ = p.stdin.Close() // fails if it is already closed
	select {
	case <-p.done:
	case <-time.After(patience):
	}
}

func (p *process) list() []*history.Hold {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*history.Hold(nil), p.holds...)
}

// holdsAfter waits until each lock has been acquired after the time at by one of the clients.
func holdsAfter(t *testing.T, at time.Time, clients ...*process) {
	t.Helper()
	redistest.Eventually(t, "each lock is acquired again", func() bool {
		taken := map[string]bool{}
		for _, p := range clients {
			list := p.list()
			for i := len(list) - 1; i >= 0 && list[i].Until > at.UnixNano(); i-- {
				taken[list[i].Name] = taken[list[i].Name] || list[i].From > at.UnixNano()
			}
		}
		for _, name := range names {
			if !taken[name] {
				return false
			}
		}
		return true
	})
}
