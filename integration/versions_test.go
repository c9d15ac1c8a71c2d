package integration

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
)

// The check of the masters finds nothing to object to on any version that is supported.
func TestTheCheckKnowsWhichVersionsAreSupported(t *testing.T) {
	five := masters(t, 5)
	p, err := pool.Dial(urls(five), pool.WithTimeout(time.Second), pool.WithDialTimeout(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	findings, err := p.Check(bounded(t), pool.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Log(f)
		if f.Severity > pool.Notice {
			t.Errorf("found on a master that is well: %v", f)
		}
	}
}
