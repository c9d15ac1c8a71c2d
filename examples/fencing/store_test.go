package main

import (
	"database/sql"
	"errors"
	"math"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newStore(t *testing.T) *store {
	t.Helper()
	s, err := openStore(t.Context(), filepath.Join(t.TempDir(), "stock.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestTableRefusesSmallerToken(t *testing.T) {
	s := newStore(t)
	for _, c := range []struct {
		amount, token int64
		refused       bool
	}{{10, 5, false}, {11, 5, false}, {12, 4, true}, {13, 9, false}, {14, 5, true}, {15, 8, true}, {16, 9, false}} {
		err := s.set(t.Context(), "apples", c.amount, c.token)
		if errors.Is(err, errFenced) != c.refused || err != nil && !c.refused {
			t.Errorf("the write of %d with token %d returned %v, want refused: %v", c.amount, c.token, err, c.refused)
		}
	}
	if amount, token, err := s.get(t.Context(), "apples"); amount != 16 || token != 9 || err != nil {
		t.Errorf("the table contains %d with token %d, %v; want 16 with 9", amount, token, err)
	}
	for _, token := range []int64{0, -1, math.MinInt64} {
		if err := s.set(t.Context(), "plums", 1, token); !errors.Is(err, errNoToken) {
			t.Errorf("the first write of an item, with token %d, returned %v; want errNoToken", token, err)
		}
	}
	if _, _, err := s.get(t.Context(), "plums"); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("after the refused writes the table returned %v, want no row", err)
	}
	if err := s.set(t.Context(), "pears", 1, 1); err != nil {
		t.Errorf("the token of one item affects another item: %v", err)
	}
}
