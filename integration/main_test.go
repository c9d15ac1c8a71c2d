package integration

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/worker"
)

// proxyLeaks lists goroutines that toxiproxy 2.5 leaks: if a connection ends while data passes through a link, these
// goroutines wait forever to forward the data. No other goroutine may be left.
var proxyLeaks = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*BandwidthToxic).Pipe"),
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*LatencyToxic).Pipe"),
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*LimitDataToxic).Pipe"),
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ResetToxic).Pipe"),
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*NoopToxic).Pipe"),
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
}

// TestMain also runs the test binary as one of the programs that the tests start: see worker_test.go and
// reaper_test.go.
func TestMain(m *testing.M) {
	if worker.Role() != "" {
		os.Exit(worker.Main(runWorker))
	}
	if os.Getenv(reaperEnv) != "" {
		os.Exit(reaperMain())
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given { // each scenario mostly waits
		if err := flag.Set("test.parallel", "4"); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if err := closeDocker(); err != nil {
		fmt.Fprintln(os.Stderr, "integration: cleaning up:", err)
		code = max(code, 1)
	}
	if err := goleak.Find(proxyLeaks...); err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}
