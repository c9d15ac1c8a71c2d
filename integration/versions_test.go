package integration

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/transport"
)

// Check reports no problem on any supported version.
func TestCheckOfServerVersions(t *testing.T) {
	five := masters(t, 5)
	p, err := transport.Open(urls(five), transport.WithTimeout(time.Second), transport.WithDialTimeout(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	findings, err := p.Check(bounded(t), transport.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Log(f)
		if f.Severity > transport.Notice {
			t.Errorf("finding about a healthy master: %v", f)
		}
	}
}
