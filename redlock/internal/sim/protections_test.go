package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/race"
)

// An edit takes a piece of the source out, or puts another in its place. The file is named from the root of the
// module, and must have the text once.
type edit struct{ file, text, replacement string }

// The files that protections lie in.
const (
	askFile       = "redlock/internal/grant/ask.go"
	grantFile     = "redlock/internal/grant/grant.go"
	extendFile    = "redlock/internal/grant/extend.go"
	releaseFile   = "redlock/internal/grant/release.go"
	repairFile    = "redlock/internal/grant/repair.go"
	judgeFile     = "redlock/internal/admission/judge.go"
	listFile      = "redlock/internal/admission/list.go"
	admitFile     = "internal/scripts/reference/admit.go"
	factFile      = "redlock/internal/admission/fact.go"
	numbersFile   = "redlock/internal/admission/numbers.go"
	votersFile    = "redlock/internal/voters/voters.go"
	acquireFile   = "internal/scripts/reference/acquire.go"
	sharedFile    = "internal/scripts/reference/shared.go"
	queueFile     = "internal/scripts/reference/queue.go"
	othersFile    = "internal/scripts/reference/others.go"
	contendFile   = "redlock/internal/queue/contend.go"
	inboxFile     = "redlock/internal/queue/inbox.go"
	roundFile     = "redlock/internal/round/round.go"
	reconfigFile  = "redlock/internal/reconfig/reconfig.go"
	lockerFile    = "redlock/locker.go"
	leapFile      = "redlock/internal/ballot/leap.go"
	driftFile     = "clock/drift.go"
	instantFile   = "clock/clock.go"
	protectionFor = 8000 // schedules in which a missing protection must be found
)

// A protection can be taken out, and is missed by the kinds of schedules that find it soonest.
type protection struct {
	name  string
	kinds []kind
	shows string // what the words of the violation have in them
	wrong string // what goes wrong without it, for the table in the README
	edits []edit
}

var protections = []protection{
	{"restart-guard", []kind{amnesia}, "two holders",
		"a master that restarted empty votes again at once: two holders",
		[]edit{{judgeFile, "		return m\n	}\n	return f.write(scripts.AdmitStart, i)",
			"		return m\n	}\n	return f.write(scripts.AdmitNow, i)"},
			{admitFile, "step == scripts.AdmitNow && known:", "step == scripts.AdmitNow && (known || true):"}}},
	{"identity-beyond-run-id", []kind{amnesia}, "two holders",
		"a master that was a replica in between has the same run id and an old record, and votes: two holders",
		[]edit{{factFile, "(f.Record.Identity == f.Identity ||", "(runID(f.Record.Identity) == runID(f.Identity) ||"}}},
	{"second-offset", []kind{amnesia}, "two holders",
		"a master that was a replica of the same server twice differs by the offset alone, and votes: two holders",
		[]edit{{factFile, "(f.Record.Identity == f.Identity ||",
			"(f.Record.Identity[:strings.LastIndexByte(f.Record.Identity, '/')] == " +
				"f.Identity[:strings.LastIndexByte(f.Identity, '/')] ||"}}},
	{"fleet-guard-time", []kind{fleets}, "two holders",
		"a program with a short guard time admits a forgetful master under the long grant of another, which does not look " +
			"at the records of those that vote while no quorum does: two holders",
		[]edit{{numbersFile, "r.Quarantine = max(r.Quarantine, fact.Record.Quarantine, fact.Record.Longest)", ""},
			{numbersFile, "return max(r.Quarantine, r.Longest+f.Facts[i].Late)", "return r.Quarantine"},
			{votersFile, "if v.set.Guard > 0 && !c.Rule.Won(next.Voting) {", "if false {"}}},
	{"master-list", []kind{strangers}, "two holders",
		"clients that name other masters of one deployment have a majority each: two holders",
		[]edit{{listFile, "return prepared || r.Masters == c.Masters && r.Next == c.Next", "return prepared || true"},
			{admitFile, "old[\"epoch\"] == wanted[\"epoch\"] && !same", "false && !same"}}},
	{"first-records", []kind{strangers}, "two holders",
		"clients with unlike lists begin on new masters at one moment, each on those that the other has not reached first: " +
			"two holders",
		[]edit{{listFile, "		if f.objects(j) {\n			return f.otherMasters(i, j)", "		if false && f.objects(j) {\n			return nil"},
			{listFile, "if !fresh.Has(j) && (!fact.Settled", "if false && (!fact.Settled"}}},
	{"tombstone", []kind{lateness}, "after its end",
		"an acquire that comes after its own release takes the name for nobody",
		[]edit{{othersFile, "if ballot > top && ballot <=", "if false && ballot > top && ballot <="}}},
	{"fence", []kind{contention}, "has token",
		"an acquire that was long on its way wins with a token not above that of the holder before",
		[]edit{{acquireFile, "if a.first <= top || a.first <= now-window {", "if a.first <= now-window {"}}},
	{"ballot-bounds", []kind{oldness}, "has token",
		"once the fences have expired, a client whose clock has lost time wins with an old token",
		[]edit{{acquireFile, "if a.first <= top || a.first <= now-window {", "if a.first <= top {"}}},
	{"recheck", []kind{lateness}, "of validity left",
		"a lock is handed out with less validity than was asked for, or none",
		[]edit{{askFile, "left := v.left(now); left < terms.Least {", "left := v.left(now); false && left < terms.Least {"},
			{lockerFile, "return k.Remaining() > 0 && k.handle.Validity() >= cfg.Least", "return true"}}},
	{"drift", []kind{clocks}, "two holders",
		"keys end on fast clocks while a slow one still trusts them: two holders",
		[]edit{{driftFile, "Drift{Factor: 0.01, Constant: 2 * time.Millisecond}", "Drift{Constant: time.Nanosecond}"}}},
	{"both-clocks", []kind{freezes}, "two holders",
		"a virtual machine that was frozen trusts the clock that has missed the time: two holders",
		[]edit{{instantFile, "time.Duration(max(t.boot-u.boot, t.wall-u.wall))", "time.Duration(t.boot - u.boot)"}}},
	{"masters-time", []kind{paused}, "two holders",
		"a machine that has stopped with both of its clocks uses a lock that the masters have given to another: two holders",
		[]edit{{leapFile, "l.missed.Add(int64(by))", "_ = by"}}},
	{"unknown-outcomes", []kind{lateness}, "is still on master",
		"what a master has granted without being heard stays there for its TTL",
		[]edit{{askFile, "if v.Kind == scripts.Granted || v.Unsure() {", "if v.Kind == scripts.Granted {"}}},
	{"stop-before-release", []kind{amnesia, suspension}, "after its end",
		"an extension that is answered after the release gives the name back to the released grant",
		[]edit{{extendFile, "	if g.state == live {\n		e.repairLocked()", "	{\n		e.repairLocked()"}}},
	{"repair-ballot", []kind{contention}, "it is on",
		"repairs are refused as stale, and a grant never returns to all masters",
		[]edit{{repairFile, "ballot, err := k.Ballots.Repair(k.Clock.Now(), max(r.Vote(i).Fence, token, g.sent.last(i)))",
			"ballot, err := token, error(nil)"}}},
	{"new-ids", []kind{contention, suspension}, "once more",
		"a grant is asked for again while the release of the first ask is on its way, which would end it",
		[]edit{{askFile, "k.number.Add(1)", "uint64(len(name))"}}},
	{"configured-quorum", []kind{partition}, "two holders",
		"clients that see different masters have a majority each: two holders",
		[]edit{{roundFile, "r.tally.Rule, r.asked = view.Config.Rule, view.Config.Rule.All()",
			"r.tally.Rule, r.asked = quorum.Rule{Old: view.Voting}, view.Config.Rule.All()"},
			{askFile, "if !view.Config.Rule.Won(view.Voting) {", "if view.Voting == 0 {"}}},
	{"epoch", []kind{changes}, "two holders",
		"a program that was not told goes on by the old masters alone, when others go by the next alone: two holders",
		[]edit{{listFile, "case !f.Facts[j].told() || r.Group != f.Group || r.Epoch > c.Epoch:\n		return false",
			"case !f.Facts[j].told():\n		return false\n	case r.Epoch > c.Epoch:\n		return true"}}},
	{"together", []kind{changes}, "two holders",
		"a program goes by the next masters alone by its own timer, while others go by the old ones: two holders",
		[]edit{{judgeFile, "case r.Alone < c.Needs(i):", "case r.Alone < 0 && c.Needs(i) > 0:"},
			{listFile, "	return r.Masters == c.Masters\n", "	return true\n"},
			{reconfigFile, "case !alone.MajorityOf(want.Rule.Old):", "case false:"}}},
	{"lost-masters", []kind{emptied}, "two holders",
		"a holder whose masters have all lost their data goes on to the end of its validity, and nobody lengthens a " +
			"quarantine that is too short for it: two holders",
		[]edit{{grantFile, "if g.state == live && g.config.Rule.Lost(g.on.lost) {", "if false {"},
			{judgeFile, "if r.Quarantine < f.span(i) {", "if false {"}}},
	{"close-releases-first", []kind{leaving}, "holds the lock on",
		"a Locker whose Close has ended with its context holds its locks on",
		[]edit{{lockerFile, "		l.grants.EndAll()\n", "		time.AfterFunc(5*time.Second, l.grants.EndAll)\n"}}},
	{"one-second", []kind{crowd}, "nobody had the name",
		"a first waiter that hangs keeps the name from all others for as long as it counts",
		[]edit{{queueFile, "counts = min(counts, c.now+toldCounts)", "counts = max(counts, toldCounts)"}}},
	{"voters-leave", []kind{lonely}, "a lock took",
		"a waiter that can reach a minority alone stands in front, and nobody else wins",
		[]edit{{contendFile, "		q.away = true\n		q.leaveLocked(n.c)\n",
			"		q.away = n.round == nil\n"}}},
	{"hint-for-nobody", []kind{quitting}, "nobody had the name",
		"waiters that have gone unheard cost the others a second each",
		[]edit{{inboxFile, "	q.remove(&keys, h.Ticket(), quorum.One(master))\n", "	_ = keys\n"}}},
	{"no-ballot", []kind{far}, "a lock took",
		"a near program that tries all the time keeps the asks of a far one stale",
		[]edit{{releaseFile, "if s := g.sent.session(i); s != 0 {", "if s := g.sent.session(i); false && s != 0 {"}}},
	{"kept-place", []kind{lasting}, "on average",
		"a waiter whose ask was rolled back stands behind all others, and the next one gets the name several times as late",
		[]edit{{askFile, "g.sendRelease(\"roll back\", set, true)", "g.sendRelease(\"roll back\", set, false)"}}},
	{"minimum-kept", []kind{minimum}, "the minimum hold of",
		"an Unlock frees the name at once, whatever the minimum hold",
		[]edit{{othersFile, "int64(number(c.argOr(3, \"0\")))", "0*int64(number(c.argOr(3, \"0\")))"}}},
	{"minimum-asked", []kind{minimum}, "the minimum hold of",
		"the masters free the name of a program that they do not hear from before the minimum hold is over",
		[]edit{{grantFile, "return max(t.TTL, t.rest(held, d))", "return t.TTL"}}},
	{"writer-alone", []kind{readers}, "two holders",
		"a writer is let in while readers have the name: two holders",
		[]edit{{sharedFile, "(writer || ofWriter.MatchString(held)), left", "ofWriter.MatchString(held), left"}}},
	{"readers-wait", []kind{readers}, "two holders",
		"a reader is let in while the writer has the name: two holders",
		[]edit{{sharedFile, "(writer || ofWriter.MatchString(held)), left", "writer, left"}}},
	{"readers-fence", []kind{readers}, "after token",
		"a writer wins with a token not above that of a reader before",
		[]edit{{sharedFile, "if writer && reads > top {", "if false {"}}},
	{"reader-tombstone", []kind{readers}, "again, after its end",
		"a reader's ask that comes after its own release takes a share for nobody, and writers wait for its end",
		[]edit{{othersFile, "if ballot > top && ballot <=", "if false && ballot > top && ballot <="}}},
	{"writers-turn", []kind{readers}, "starved",
		"readers that come later do not wait behind a writer, and it waits for as long as they come",
		[]edit{{sharedFile, "			return counts - 12000000 - c.now, true", "			return 0, false"}}},
}

// rare says where to begin to look for what few schedules show. Where the draws of schedules change, what is said here
// may be found late, and the test becomes slow: put there the number that it then logs.
var rare = map[string]uint64{"fleet-guard-time": 1307}

// applied makes some edits, and returns the new texts of the files by their paths. An edit that does not apply fails the
// test.
func applied(t *testing.T, edits []edit) map[string]string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, e := range edits {
		path := filepath.Join(root, e.file)
		if texts[path] == "" {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(text)
		}
		if n := strings.Count(texts[path], e.text); n != 1 {
			t.Fatalf("%s has %d times, and must have once:\n%s", e.file, n, e.text)
		}
		texts[path] = strings.Replace(texts[path], e.text, e.replacement, 1)
	}
	return texts
}

// Each protection is where its edits say, and the README tells of it.
func TestEachEditApplies(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range protections {
		t.Run(p.name, func(t *testing.T) {
			applied(t, p.edits)
			if row := fmt.Sprintf("| %s | %s |\n", p.name, p.wrong); !strings.Contains(string(readme), row) {
				t.Errorf("README.md has no row\n%s", row)
			}
		})
	}
}

// edited builds this package's tests with some edits, and returns the binary.
func edited(t *testing.T, edits []edit) (binary string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command in PATH")
	}
	dir, replace := t.TempDir(), map[string]string{}
	for path, text := range applied(t, edits) {
		replace[path] = filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sim.test")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "test", "-c", "-overlay", list, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// without is the binary without the protection of this name; "" for none, which is this binary.
func without(t *testing.T, name string) string {
	t.Helper()
	if name == "" {
		return ""
	}
	i := slices.IndexFunc(protections, func(p protection) bool { return p.name == name })
	if i < 0 {
		t.Fatalf("there is no protection named %q", name)
	}
	return edited(t, protections[i].edits)
}

// With one protection taken out, the same schedules find a violation, and find none in the same one when it is back
// in: the checks can fail, and each protection is needed. Protections of the masters' scripts are taken out of
// their reference.
func TestWithoutOneProtectionASchedulesFindsAViolation(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("needs a run without -short and -race: it builds a binary for each mutant")
	}
	for _, p := range protections {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.missed(t)
		})
	}
}

func (p *protection) missed(t *testing.T) {
	t.Helper()
	binary, began := edited(t, p.edits), time.Now()
	var found *badSeed
	names := make([]string, len(p.kinds))
	for i, k := range p.kinds {
		names[i] = kindNames[k]
	}
	c := child{first: *firstSeed + rare[p.name], seeds: max(*seedCount, protectionFor),
		kinds: strings.Join(names, ","), until: p.shows, binary: binary}
	sum := c.run(t, func() {}, func(b badSeed) { found = &b })
	if found == nil {
		t.Fatalf("%d schedules have found nothing", sum.Runs)
	}
	at := slices.IndexFunc(found.Problems, func(s string) bool { return strings.Contains(s, p.shows) })
	if at < 0 {
		t.Fatalf("%d schedules have shown %q in none: %s", sum.Runs, p.shows, found.Problems)
	}
	t.Logf("found after %v, by schedule %d of its kinds: %s", time.Since(began).Round(time.Millisecond), sum.Runs,
		found.Problems[at])
	t.Logf("seed %d: %s", found.Seed, p.wrong)
	intact := child{first: found.Seed, seeds: 1}
	intact.run(t, func() {}, func(b badSeed) {
		t.Errorf("seed %d finds something with the protection in, too: %s", b.Seed, b.Problems)
	})
}
