package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runCommand runs the program and returns its exit code and both outputs.
func runCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	errFile, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer errFile.Close()
	var out bytes.Buffer
	code = command(args, &out, errFile)
	text, err := os.ReadFile(errFile.Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, out.String(), string(text)
}

func mustMeasure(t *testing.T, args ...string) *report {
	t.Helper()
	code, stdout, stderr := runCommand(t, append(args, "-json")...)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var r report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	if stderr != "" {
		t.Errorf("it writes to standard error, which is no terminal: %q", stderr)
	}
	return &r
}

func needServer(t *testing.T) {
	t.Helper()
	if _, err := redisproc.Find(); err != nil {
		t.Skipf("this test runs against real servers: %v", err)
	}
}

func checkPairs(t *testing.T, r *report, goroutines ...int) {
	t.Helper()
	if len(r.Pair) != len(goroutines) {
		t.Fatalf("%d results, want %d", len(r.Pair), len(goroutines))
	}
	for i, p := range r.Pair {
		if p.Goroutines != goroutines[i] {
			t.Errorf("result %d is for %d goroutines, want %d", i, p.Goroutines, goroutines[i])
		}
		for _, name := range []string{nameLibrary, nameDirect, nameQueued} {
			f := p.Contenders[name]
			if f.P50 == nil || f.Rate == nil || f.P50.Median <= 0 || f.Rate.Median <= 0 || f.P99.Median < f.P50.Median {
				t.Errorf("%s at %d: %+v", name, p.Goroutines, f)
			}
		}
		if p.Latency == nil || p.Throughput == nil {
			t.Errorf("no ratios at %d goroutines", p.Goroutines)
		}
	}
	if r.LeftBehind == nil || *r.LeftBehind != 0 {
		t.Errorf("lock keys are left behind: %v", r.LeftBehind)
	}
}

func TestMeasuresInMemory(t *testing.T) {
	r := mustMeasure(t, "-start", "memory", "-scenario", "pair", "-rounds", "1", "-duration", "20ms", "-goroutines", "1,8")
	checkPairs(t, r, 1, 8)
	if r.Masters.Kind != kindMemory || len(r.Notes) == 0 || !strings.Contains(r.Notes[0], "client only") {
		t.Errorf("it does not say that the masters are in memory: %+v %q", r.Masters, r.Notes)
	}
	if r.Pair[0].Contenders[nameLibrary].Allocs != nil {
		t.Error("it counts allocations that are the masters' as well")
	}
}

func TestMeasuresProcesses(t *testing.T) {
	needServer(t)
	r := mustMeasure(t, "-rounds", "1", "-duration", "20ms", "-goroutines", "1,8")
	checkPairs(t, r, 1, 8)
	if len(r.Connections) != started {
		t.Fatalf("connections: %v", r.Connections)
	}
	for i, n := range r.Connections {
		if n != 1 {
			t.Errorf("the library has %d connections to master %d", n, i)
		}
	}
	if len(r.Faults) != len(allFaults()) {
		t.Fatalf("%d faults, want %d", len(r.Faults), len(allFaults()))
	}
	for _, f := range r.Faults {
		if f.P50 == nil || f.P50.Median <= 0 || f.Ratio == nil {
			t.Errorf("%s is not measured: %+v", f.Fault, f)
		}
	}
}

// Masters that are given are left as they were found.
func TestGivenMastersAreLeftClean(t *testing.T) {
	var list []string
	servers := redistest.Test(t, 3, redisproc.Config{Name: "given"})
	for _, s := range servers {
		list = append(list, s.Addr())
	}
	r := mustMeasure(t, "-masters", strings.Join(list, ","), "-rounds", "1", "-duration", "10ms", "-goroutines", "2")
	checkPairs(t, r, 2)
	if r.Masters.N != 3 || r.Masters.Kind != kindGiven || r.Masters.Version == "" {
		t.Errorf("masters: %+v", r.Masters)
	}
	if r.Faults != nil || len(r.Notes) == 0 {
		t.Errorf("faults on masters that are not its own: %v, %q", r.Faults, r.Notes)
	}
	for i, s := range servers {
		c, err := dialMaster(t.Context(), i, s.URL())
		if err != nil {
			t.Fatal(err)
		}
		if n, err := c.Do("DBSIZE"); err != nil || n != int64(0) {
			t.Errorf("master %d has %v keys, %v", i, n, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	if code, out, _ := runCommand(t, "-h"); code != exitOK || !strings.Contains(out, "usage") {
		t.Errorf("-h: %d, %q", code, out)
	}
	if code, _, stderr := runCommand(t, "-rounds", "x"); code != exitUsage || !strings.HasPrefix(stderr, "bench: ") {
		t.Errorf("a wrong flag: %d, %q", code, stderr)
	}
	// Port 1 of loopback answers nobody.
	if code, _, stderr := runCommand(t, "-masters", "127.0.0.1:1"); code != exitFailed || !strings.Contains(stderr, "master 1") {
		t.Errorf("a master that is not there: %d, %q", code, stderr)
	}
}

// Chunks that are due at once are handed on together, and in order.
func TestDeliverJoinsWhatIsDueTogether(t *testing.T) {
	due := time.Now()
	chunks := make(chan chunk, 8)
	for i, data := range []string{"a", "b", "c", "d"} {
		chunks <- chunk{due.Add(time.Duration(i/2) * time.Millisecond), []byte(data)}
	}
	close(chunks)
	var got writes
	deliver(&got, chunks)
	if strings.Join(got, " ") != "ab cd" {
		t.Errorf("got %q", got)
	}
}

// writes is what each Write was given.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

// The delay is added to each reply from its own arrival, so replies that come together are late together.
func TestProxyDelaysRepliesWithoutLimitingThem(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := echo.Accept(); err == nil {
			defer c.Close()
			_, _ = io.Copy(c, c)
		}
	}()
	p, err := newProxy(echo.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(p.url(), "redis://"))
	if err != nil {
		t.Fatal(err)
	}
	const delay = 30 * time.Millisecond
	p.setDelay(delay)
	start := time.Now()
	if _, err := io.WriteString(c, "one"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "one" {
		t.Fatalf("%q, %v", got, err)
	}
	if took := time.Since(start); took < delay {
		t.Errorf("the reply came after %v, before the delay of %v", took, delay)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
	c.Close()
	echo.Close()
	<-done
}
