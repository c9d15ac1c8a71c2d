package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
)

// The check of the masters finds nothing to object to on any version that is supported, and names the version where it is
// not.
func TestTheCheckKnowsWhichVersionsAreSupported(t *testing.T) {
	five := masters(t, 5)
	info := string(command(t, five[0], "INFO", "server").([]byte))
	old := strings.Contains(info, "redis_version:6.0") && !strings.Contains(info, "server_name:valkey")
	p, err := pool.Dial(urls(five), pool.WithTimeout(time.Second), pool.WithDialTimeout(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	findings, err := p.Check(bounded(t), pool.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, f := range findings {
		t.Log(f)
		switch {
		case old && f.About == "version" && f.Severity == pool.Failure && strings.Contains(f.What, "6.0"):
			named++
		case f.Severity > pool.Notice:
			t.Errorf("found on a master that is well: %v", f)
		}
	}
	if old && named != len(five) {
		t.Errorf("the version is named of %d masters of %d", named, len(five))
	}
}
