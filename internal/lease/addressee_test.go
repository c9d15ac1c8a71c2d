package lease

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/testbed"
)

// Messages find the lease of a reader until it ends. A call that fails before it has sent anything leaves no lease
// behind.
func TestAddresseesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 5)
		keys := testbed.Prefix.KeysOf("n", scripts.Reader)
		a := &Attempt{Name: "n", Keys: &keys, Terms: &Terms{TTL: terms().TTL}}
		l, _, err := b.Acquire(t.Context(), a)
		if err != nil || b.Addressee(l.ID) != l {
			t.Fatalf("the lease is not found: %v", err)
		}
		h := &Hold{}
		if err = h.Start(l, a.Terms); err == nil {
			err = h.Unlock(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Ballots.Saw(b.Manager.Clock.Now(), "n", scripts.MaxBallot)
		if _, _, err = b.Acquire(t.Context(), a); !errors.Is(err, ballot.ErrTokensExhausted) {
			t.Fatal(err)
		}
		b.addressees.Range(func(id, _ any) bool {
			t.Errorf("the lease %v can still get messages", id)
			return true
		})
	})
}
