package integration

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Check reports no problem on any supported version of the servers.
func TestCheckOfServerVersions(t *testing.T) {
	five := masters(t, 5)
	p, err := pool.Open(urls(five), pool.WithTimeout(time.Second), pool.WithDialTimeout(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l, err := redlock.New(p)
	if err == nil {
		defer l.Close()
		err = admin.Of(l).Admit(bounded(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	verdict, err := admin.Of(l).Check(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range verdict.Findings {
		t.Log(f)
		if f.Severity > redlockinfo.Notice {
			t.Errorf("finding about a healthy master: %v", f)
		}
	}
}
