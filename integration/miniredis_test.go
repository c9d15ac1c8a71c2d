package integration

import (
	"errors"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// TryLock and Check refuse miniredis. The error of TryLock and a finding of Check name package redlocktest.
func TestMiniredisIsRefused(t *testing.T) {
	s := miniredis.RunT(t)
	p, err := pool.Open([]string{"redis://" + s.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l, err := redlock.New(p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = l.TryLock(t.Context(), "orders")
	if !errors.Is(err, redlock.ErrNoQuorum) || !strings.Contains(err.Error(), "redlock/redlocktest") {
		t.Errorf("TryLock returned %v, want an error that names redlocktest", err)
	}
	verdict, err := admin.Of(l).Check(t.Context())
	findings := verdict.Findings
	if err != nil || len(findings) == 0 {
		t.Fatal(findings, err)
	}
	for _, f := range findings {
		if f.Master == s.Addr() && strings.Contains(f.Fix, "redlock/redlocktest") {
			return
		}
	}
	t.Errorf("no finding names redlocktest: %v", findings)
}
