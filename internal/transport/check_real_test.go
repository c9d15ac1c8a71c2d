package transport

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// Check reports a real server that is loading its data, and does not wait for it.
func TestCheckFindsAServerThatIsLoading(t *testing.T) {
	bad := startServer(t)
	bad.do("DEBUG", "POPULATE", "20000")
	bad.do("CONFIG", "SET", "key-load-delay", "1000") // 1 ms a key: loading takes 20 s, and the server is killed earlier
	bad.do("CONFIG", "SET", "loading-process-events-interval-bytes", "1024")
	c, err := redis.Dial("unix", bad.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send("DEBUG", "RELOAD"); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "loading", func() bool { return strings.Contains(bad.text("INFO", "persistence"), "loading:1") })
	w := wrong{about: "loading", severity: Failure, what: "loading", advice: "wait"}
	w.compare(t, bad.addr, checkWith(t, bad))
}

// Check reports real servers whose clocks are wrong.
func TestCheckFindsClocksThatAreOff(t *testing.T) {
	cc, err := exec.LookPath(cmp.Or(os.Getenv("CC"), "cc"))
	if runtime.GOOS != "linux" || err != nil {
		t.Skip("needs Linux and a C compiler (apt-get install gcc libc6-dev): " +
			"a small C library that is loaded into the server shifts its clock")
	}
	shim := filepath.Join(t.TempDir(), "shift.so")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-O1", "-o", shim,
		"testdata/shift/shift.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for shift, w := range map[string]wrong{
		"0":   {silent: true},
		"10":  {about: "clock", severity: Warning, what: "ahead of", advice: "chrony"},
		"20":  {about: "clock", severity: Failure, what: "ahead of", advice: "chrony"},
		"-20": {about: "clock", severity: Failure, what: "behind", advice: "chrony"},
	} {
		t.Run(shift, func(t *testing.T) {
			t.Setenv("LD_PRELOAD", shim)
			t.Setenv("SHIFT", shift)
			bad := startServer(t)
			t.Setenv("SHIFT", "0") // of the healthy servers
			w.compare(t, bad.addr, checkWith(t, bad))
		})
	}
}

// checkWith checks bad and two healthy servers, with the defaults.
func checkWith(t *testing.T, bad *server) []Finding {
	t.Helper()
	p := open(t, []string{startServer(t).url(), bad.url(), startServer(t).url()}, WithDialTimeout(patience),
		WithTimeout(patience))
	findings, err := p.Check(t.Context(), CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return findings
}
