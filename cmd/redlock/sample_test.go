//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// Three servers with the sample files of deploy/redis, started as docs/run.md says: check and status name the first
// step, admit, and after it check finds nothing that endangers locks, and the user of the clients can lock.
func TestSampleConfiguration(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	dir := redistest.Certificates(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		writeFile(t, path, text)
		return path
	}
	read := func(name string) string {
		text, err := os.ReadFile("../../deploy/redis/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	users := write("users.acl", read("users.acl"))
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("needs redis-server")
	}
	var urls []string
	var ends []func()
	for i := range 3 {
		port, err := redisproc.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		conf := write(fmt.Sprintf("redis%d.conf", i), strings.NewReplacer("/etc/redis/tls", dir,
			"/etc/redis/users.acl", users,
			"tls-port 6379", fmt.Sprintf("tls-port %d\nbind 127.0.0.1\ndir %s", port, dir)).Replace(read("redis.conf")))
		cmd := exec.Command(program, conf)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		end := sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		t.Cleanup(end)
		ends = append(ends, end)
		urls = append(urls, fmt.Sprintf("rediss://127.0.0.1:%d", port))
	}
	file := func(user, password string) []string {
		path := filepath.Join(dir, user+".json")
		writeJSON(t, path, map[string]any{"masters": urls, "user": user, "password": password, "ca": "ca.pem"})
		return []string{"--config", path}
	}
	operator, client := file("operator", "CHANGE-THIS-TOO"), file("lock", "CHANGE-THIS")
	for _, url := range urls { // until the servers have started
		if !redistest.Until(func() bool {
			c, err := net.Dial("tcp", strings.TrimPrefix(url, "rediss://"))
			if err == nil {
				c.Close()
			}
			return err == nil
		}) {
			t.Fatalf("%s does not start with the sample files", url)
		}
	}
	for _, command := range []string{"check", "status"} {
		call(t, exitNoQuorum, "redlock admit", append([]string{command}, operator...)...)
	}
	call(t, exitDone, "3 of 3 masters vote", append([]string{"admit", "--yes"}, operator...)...)
	for _, who := range [][]string{operator, client} {
		var out bytes.Buffer
		run(append([]string{"check"}, who...), &out, &out)
		text := out.String() // the certificates of the test end in a day
		if !strings.HasPrefix(text, "locks can be acquired: yes") || strings.Count(text, "fix: ") > 1 ||
			!strings.Contains(text, "its certificate, or that of its authority, expires on") {
			t.Errorf("check finds\n%s", text)
		}
	}
	command := built(t)
	args := append(append([]string{"run"}, client...), "x", "--", "true")
	if out, err := exec.CommandContext(t.Context(), command, args...).CombinedOutput(); err != nil {
		t.Errorf("run failed: %v\n%s", err, out)
	}
	call(t, exitDone, "", append([]string{"ls"}, operator...)...)

	// If a majority is lost for good, the command for redis-cli that is printed works as it is, with TLS and the user.
	ends[0]()
	ends[1]()
	var plan bytes.Buffer
	run([]string{"set", operator[1]}, &plan, &plan)
	_, line, _ := strings.Cut(plan.String(), "  2. ")
	line, _, _ = strings.Cut(line, "\n")
	del := exec.CommandContext(t.Context(), "sh", "-c", line)
	del.Stdin = strings.NewReader("CHANGE-THIS-TOO\n")
	if out, err := del.CombinedOutput(); err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "1") {
		t.Errorf("%q printed %s, %v; want that one key is deleted", line, out, err)
	}
}
