//go:build redlock_teeth

package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/teeth"
	"github.com/redlock-go/redlock/redlock"
)

// A tooth is one protection that can be taken out, and the kinds of schedules that find it soonest.
type tooth struct {
	name  string
	out   *bool // of package teeth, or
	opt   redlock.Option
	kinds []kind
	shows string // what the words of the violation have in them
	wrong string // what goes wrong without it, for the table in the README
}

var allTeeth = []tooth{
	{name: "restart-guard", opt: redlock.WithoutGuard(), kinds: []kind{amnesia},
		shows: "two holders", wrong: "a master that restarted empty votes again at once: two holders"},
	{name: "identity-beyond-run-id", out: &teeth.RunIDAlone, kinds: []kind{amnesia},
		shows: "two holders", wrong: "a master that was a replica in between has the same run id and an old marker, and votes: two holders"},
	{name: "fleet-guard-time", out: &teeth.OwnGuardTime, kinds: []kind{fleets},
		shows: "two holders", wrong: "a program with a short guard time admits a forgetful master under the long hold of another: two holders"},
	{name: "tombstone", out: &teeth.NoTombstone, kinds: []kind{lateness},
		shows: "after its end", wrong: "an acquire that comes after its own release takes the name for nobody"},
	{name: "bar", out: &teeth.NoBar, kinds: []kind{contention},
		shows: "has token", wrong: "an acquire that was long on its way wins with a token not above that of the holder before"},
	{name: "ballot-bounds", out: &teeth.NoBounds, kinds: []kind{oldness},
		shows: "has token", wrong: "once the bars have expired, a client whose clock has lost time wins with an old token"},
	{name: "full-round", out: &teeth.KeepGrants, kinds: []kind{contention},
		shows: "two holders", wrong: "old grants are counted with a new start, and end before the holder thinks: two holders; or with a new token that their masters do not know"},
	{name: "recheck", out: &teeth.NoRecheck, kinds: []kind{lateness},
		shows: "of validity left", wrong: "a lock is handed out with less validity than was asked for, or none"},
	{name: "drift", opt: redlock.WithDrift(clock.Drift{}), kinds: []kind{clocks},
		shows: "two holders", wrong: "keys end on fast clocks while a slow one still trusts them: two holders"},
	{name: "unknown-outcomes", out: &teeth.NoUnknown, kinds: []kind{lateness},
		shows: "is still on master", wrong: "what a master has granted without being heard stays there for its TTL"},
	{name: "stop-before-release", out: &teeth.ExtendEnded, kinds: []kind{amnesia, suspension},
		shows: "after its end", wrong: "an extension that is answered after the release gives the name back to the released hold"},
	{name: "heal-majority", out: &teeth.HealUnconfirmed, kinds: []kind{suspension},
		shows: "two holders", wrong: "a client that slept through its TTL writes its lost keys anew, and extends them: two holders"},
	{name: "heal-ballot", out: &teeth.HealOldBallot, kinds: []kind{contention},
		shows: "it is on", wrong: "heals are refused as stale, and a hold never returns to all masters"},
	{name: "new-ballots", out: &teeth.SameBallots, kinds: []kind{contention, suspension},
		shows: "by the ballots", wrong: "a hold is asked for twice by one ballot: the answer to the first counts from the start of the second"},
	{name: "configured-quorum", out: &teeth.QuorumOfConnected, kinds: []kind{partition},
		shows: "two holders", wrong: "clients that see different masters have a majority each: two holders"},
	{name: "epoch", out: &teeth.NoEpoch, kinds: []kind{changes},
		shows: "two holders", wrong: "a program that was not told goes on by the old masters alone, when others go by the next alone: two holders"},
	{name: "together", out: &teeth.NoTogether, kinds: []kind{changes},
		shows: "two holders", wrong: "a program goes by the next masters alone by its own timer, while others go by the old ones: two holders"},
}

// takeOut takes the protection of this name out; "" is none.
func takeOut(t *testing.T, name string) (opts []redlock.Option, restore func()) {
	t.Helper()
	if name == "" {
		return nil, func() {}
	}
	for _, one := range allTeeth {
		switch {
		case one.name != name:
		case one.opt != nil:
			return []redlock.Option{one.opt}, func() {}
		default:
			*one.out = true
			return nil, func() { *one.out = false }
		}
	}
	t.Fatalf("there is no protection named %q", name)
	return nil, nil
}

// bites is how many schedules a missing protection must be found in.
const bites = 4000

// With one protection taken out, the same schedules find a violation, and find none in the same one when it is back in:
// the checks can fail, and each protection is needed.
func TestWithoutOneProtectionASchedulesFindsAViolation(t *testing.T) {
	for _, one := range allTeeth {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			var found *badSeed
			began := time.Now()
			c := child{seeds: max(*seedCount, bites), without: one.name, kinds: one.kinds, until: one.shows}
			sum := c.run(t, func() {}, func(b badSeed) { found = &b })
			if found == nil {
				t.Fatalf("%d schedules have found nothing", sum.Runs)
			}
			at := slices.IndexFunc(found.Problems, func(p string) bool { return strings.Contains(p, one.shows) })
			if at < 0 {
				t.Fatalf("%d schedules have shown %q in none: %s", sum.Runs, one.shows, found.Problems)
			}
			t.Logf("found after %v, by schedule %d of its kinds: %s", time.Since(began).Round(time.Millisecond), sum.Runs, found.Problems[at])
			t.Logf("| %s | %s | %d |", one.name, one.wrong, found.Seed)
			if !found.Intact {
				t.Errorf("seed %d finds something with the protection in, too", found.Seed)
			}
		})
	}
}
