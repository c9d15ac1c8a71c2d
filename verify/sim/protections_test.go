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

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/race"
)

// An edit replaces a part of the source, which must occur exactly once. The path of the file is relative to the root of
// the module.
type edit struct{ file, text, replacement string }

// The files with protections.
const (
	leaseAcquireFile = "redlock/internal/lease/acquire.go"
	leaseFile        = "redlock/internal/lease/lease.go"
	extendFile       = "redlock/internal/lease/extend.go"
	releaseFile      = "redlock/internal/lease/release.go"
	repairFile       = "redlock/internal/lease/repair.go"
	judgeFile        = "redlock/internal/admission/judge.go"
	listFile         = "redlock/internal/admission/list.go"
	admitFile        = "internal/scripts/reference/admit.go"
	factFile         = "redlock/internal/admission/fact.go"
	numbersFile      = "redlock/internal/admission/numbers.go"
	monitorFile      = "redlock/internal/monitor/monitor.go"
	acquireFile      = "internal/scripts/reference/acquire.go"
	sharedFile       = "internal/scripts/reference/shared.go"
	queueFile        = "internal/scripts/reference/queue.go"
	othersFile       = "internal/scripts/reference/others.go"
	contendFile      = "redlock/internal/waitqueue/contend.go"
	inboxFile        = "redlock/internal/waitqueue/inbox.go"
	roundFile        = "redlock/internal/round/round.go"
	reconfigFile     = "redlock/internal/reconfig/reconfig.go"
	lockerFile       = "redlock/locker.go"
	leapFile         = "redlock/internal/ballot/leap.go"
	driftFile        = "redlock/internal/lease/drift.go"
	instantFile      = "clock/clock.go"
	protectionFor    = 8000 // maximum number of schedules until the mutant is killed
)

// A protection is a rule that a mutant removes; the kinds are those that kill the mutant soonest.
type protection struct {
	name  string
	kinds []kind
	shows string // part of the description of the violation
	wrong string // the consequence, for the table in the README
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
		"a program with a short max TTL admits a forgetful master under the long grant of another, which does not look " +
			"at the records of those that vote while no quorum does: two holders",
		[]edit{{numbersFile, "r.Quarantine = max(r.Quarantine, fact.Record.Quarantine, fact.Record.Longest)", ""},
			{numbersFile, "return max(r.Quarantine, r.Longest+f.Facts[i].Late)", "return r.Quarantine"},
			{monitorFile, "if m.settings.Guard > 0 && !c.Rule.Won(next.Voting) {", "if false {"}}},
	{"master-list", []kind{strangers}, "two holders",
		"clients that name other masters of one deployment have a majority each: two holders",
		[]edit{{listFile, "return prepared || r.Masters == c.Masters && r.Next == c.Next", "return prepared || true"},
			{admitFile, "old[\"epoch\"] == wanted[\"epoch\"] && !same", "false && !same"}}},
	{"first-records", []kind{strangers}, "two holders",
		"clients with unlike lists begin on new masters at one moment, each on those that the other has not reached first: " +
			"two holders",
		[]edit{{listFile, "		if f.objects(j) {\n			return f.otherMasters(i, j)",
			"		if false && f.objects(j) {\n			return nil"},
			{listFile, "if !fresh.Has(j) && (!fact.Settled", "if false && (!fact.Settled"}}},
	{"repair-session", []kind{amnesia}, "rule \"missing\"",
		"a repair goes to the present session of a master, which has forgotten a vote since the round that justified it",
		[]edit{{repairFile, "m, view := l.m, r.View", "m, view := l.m, l.m.View()"}}},
	{"tombstone", []kind{lateness}, "after its end",
		"an acquire that comes after its own release takes the name for no client",
		[]edit{{othersFile, "if ballot > top && ballot <=", "if false && ballot > top && ballot <="}}},
	{"fence", []kind{contention}, "has token",
		"an acquire that was long on its way wins with a token not above that of the holder before",
		[]edit{{acquireFile, "if a.first <= top || a.first <= now-window {", "if a.first <= now-window {"}}},
	{"ballot-bounds", []kind{oldness}, "has token",
		"once the fences have expired, a client whose clock has lost time wins with an old token",
		[]edit{{acquireFile, "if a.first <= top || a.first <= now-window {", "if a.first <= top {"}}},
	{"recheck", []kind{lateness}, "of validity left",
		"a lock is handed out with less validity than was asked for, or none",
		[]edit{{leaseAcquireFile, "left := v.left(now); left < terms.Least {",
			"left := v.left(now); false && left < terms.Least {"},
			{lockerFile, "if k.handle.HasLeft(cfg.Least) {", "if true {"}}},
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
		[]edit{{leaseAcquireFile, "if v.Outcome == scripts.Granted || v.Unsure() {", "if v.Outcome == scripts.Granted {"}}},
	{"stop-before-release", []kind{amnesia, suspension}, "after its end",
		"an extension that is answered after the release gives the name back to the released grant",
		[]edit{{extendFile, "	if l.state == live {\n		e.repairLocked()", "	{\n		e.repairLocked()"}}},
	{"repair-ballot", []kind{contention}, "it is on",
		"repairs are refused as stale, and a grant never returns to all masters",
		[]edit{{repairFile, "ballot, err := m.Ballots.Repair(m.Clock.Now(), max(r.Vote(i).Fence, token, l.sent.last(i)))",
			"ballot, err := token, error(nil)"}}},
	{"new-ids", []kind{contention, suspension}, "once more",
		"a grant is asked for again while the release of the first ask is on its way, which would end it",
		[]edit{{leaseAcquireFile, "m.number.Add(1)", "uint64(len(name))"}}},
	{"configured-quorum", []kind{partition}, "two holders",
		"clients that see different masters have a majority each: two holders",
		[]edit{{roundFile, "r.tally.Rule, r.asked = view.Config.Rule, view.Config.Rule.All()",
			"r.tally.Rule, r.asked = quorum.Rule{Old: view.Voting}, view.Config.Rule.All()"},
			{leaseAcquireFile, "if !view.Config.Rule.Won(view.Voting) {", "if view.Voting == 0 {"}}},
	{"epoch", []kind{changes}, "two holders",
		"a client that has not followed the change uses the old masters alone, when others use the next alone: two holders",
		[]edit{{listFile, "case !f.Facts[j].told() || r.Group != f.Group || r.Epoch > c.Epoch:\n		return false",
			"case !f.Facts[j].told():\n		return false\n	case r.Epoch > c.Epoch:\n		return true"}}},
	{"together", []kind{changes}, "two holders",
		"a program uses the next masters alone by its own timer, while others use the old ones: two holders",
		[]edit{{judgeFile, "case r.Alone < c.Needs(i):", "case r.Alone < 0 && c.Needs(i) > 0:"},
			{listFile, "	return r.Masters == c.Masters\n", "	return true\n"},
			{reconfigFile, "case !alone.MajorityOf(want.Rule.Old):", "case false:"}}},
	{"lost-masters", []kind{emptied}, "two holders",
		"a holder whose masters have all lost their data goes on to the end of its validity, and no client lengthens a " +
			"quarantine that is too short for it: two holders",
		[]edit{{leaseFile, "if (l.state == live || l.state == idle) && l.config.Rule.Lost(l.on.lost) {", "if false {"},
			{judgeFile, "if r.Quarantine < f.span(i) {", "if false {"}}},
	{"close-releases-first", []kind{leaving}, "holds the lock on",
		"a Locker whose Close has ended with its context holds its locks on",
		[]edit{{lockerFile, "		l.grants.EndAll()\n", "		time.AfterFunc(5*time.Second, l.grants.EndAll)\n"}}},
	{"one-second", []kind{crowd}, "no client had the name",
		"a first waiter that hangs keeps the name from all others for as long as it counts",
		[]edit{{queueFile, "counts = min(counts, c.now+toldCounts)", "counts = max(counts, toldCounts)"}}},
	{"voters-leave", []kind{lonely}, "a lock took",
		"a waiter that can reach a minority alone is in front, and no other client wins",
		[]edit{{contendFile, "		q.noQuorum = true\n		q.leaveMastersLocked(n.c)\n",
			"		q.noQuorum = n.round == nil\n"}}},
	{"hint-for-nobody", []kind{quitting}, "no client had the name",
		"waiters that have gone unheard cost the others a second each",
		[]edit{{inboxFile, "	q.removeWaiter(&keys, h.Ticket(), quorum.One(master))\n", "	_ = keys\n"}}},
	{"no-ballot", []kind{far}, "a lock took",
		"a near program that tries all the time keeps the asks of a far one stale",
		[]edit{{releaseFile, "if s := l.sent.session(i); s != 0 {", "if s := l.sent.session(i); false && s != 0 {"}}},
	{"kept-place", []kind{lasting}, "on average",
		"a waiter whose ask was rolled back is behind all others, and the next one gets the name several times as late",
		[]edit{{leaseAcquireFile, "l.sendRelease(\"roll back\", set, true)", "l.sendRelease(\"roll back\", set, false)"}}},
	{"minimum-kept", []kind{minimum}, "the minimum hold of",
		"an Unlock frees the name at once, regardless of the min hold",
		[]edit{{othersFile, "int64(number(c.argOr(3, \"0\")))", "0*int64(number(c.argOr(3, \"0\")))"}}},
	{"minimum-asked", []kind{minimum}, "the minimum hold of",
		"the masters free the name of a program that they do not hear from before the min hold has ended",
		[]edit{{leaseFile, "return max(t.TTL, t.remainingMinHold(held, d))", "return t.TTL"}}},
	{"writer-alone", []kind{readers}, "two holders",
		"a writer is granted the name while readers hold it: two holders",
		[]edit{{sharedFile, "(writer || ofWriter.MatchString(held)), left", "ofWriter.MatchString(held), left"}}},
	{"readers-wait", []kind{readers}, "two holders",
		"a reader is granted the name while the writer holds it: two holders",
		[]edit{{sharedFile, "(writer || ofWriter.MatchString(held)), left", "writer, left"}}},
	{"readers-fence", []kind{readers}, "after token",
		"a writer wins with a token not above that of a reader before",
		[]edit{{sharedFile, "if writer && reads > top {", "if false {"}}},
	{"reader-tombstone", []kind{readers}, "again, after its end",
		"a reader's ask that comes after its own release takes a share for no client, and writers wait for its end",
		[]edit{{othersFile, "if ballot > top && ballot <=", "if false && ballot > top && ballot <="}}},
	{"writers-turn", []kind{readers}, "starved",
		"readers that come later do not wait behind a writer, and it waits for as long as they come",
		[]edit{{sharedFile, "			return counts - 12000000 - c.now, true", "			return 0, false"}}},
}

// rare holds the first schedule to try for mutants that few schedules kill. If the draws of schedules change, a mutant
// may be killed late and the test becomes slow: then enter the number that the test logs.
var rare = map[string]uint64{"fleet-guard-time": 1307}

// applied applies edits, and returns the new texts of the files by their paths. An edit that does not apply fails the
// test.
func applied(t *testing.T, edits []edit) map[string]string {
	t.Helper()
	root, err := filepath.Abs("../..")
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
			t.Fatalf("%s contains this %d times, want once:\n%s", e.file, n, e.text)
		}
		texts[path] = strings.Replace(texts[path], e.text, e.replacement, 1)
	}
	return texts
}

// Each edit applies, and the README has a row for each protection.
func TestEachEditApplies(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range protections {
		t.Run(p.name, func(t *testing.T) {
			applied(t, p.edits)
			if row := fmt.Sprintf("| %s | %s |\n", p.name, p.wrong); !strings.Contains(string(readme), row) {
				t.Errorf("README.md does not contain the row\n%s", row)
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

// without returns the binary without the protection of this name; "" for no mutant, which is this binary.
func without(t *testing.T, name string) string {
	t.Helper()
	if name == "" {
		return ""
	}
	i := slices.IndexFunc(protections, func(p protection) bool { return p.name == name })
	if i < 0 {
		t.Fatalf("no protection is named %q", name)
	}
	return edited(t, protections[i].edits)
}

// Each mutant, which removes one protection, is killed by some schedule, and the same schedule finds no violation in
// the original: the checks can fail, and each protection is needed. Protections in the masters' scripts are removed
// from the reference.
func TestWithoutOneProtectionASchedulesFindsAViolation(t *testing.T) {
	if !long.Enabled() || race.Enabled {
		t.Skip("needs -long, without -race: it builds a binary for each mutant")
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
		t.Fatalf("%d schedules found no violation", sum.Runs)
	}
	at := slices.IndexFunc(found.Problems, func(s string) bool { return strings.Contains(s, p.shows) })
	if at < 0 {
		t.Fatalf("no violation in %d schedules contains %q: %s", sum.Runs, p.shows, found.Problems)
	}
	t.Logf("found after %v, by schedule %d of its kinds: %s", time.Since(began).Round(time.Millisecond), sum.Runs,
		found.Problems[at])
	t.Logf("seed %d: %s", found.Seed, p.wrong)
	intact := child{first: found.Seed, seeds: 1}
	intact.run(t, func() {}, func(b badSeed) {
		t.Errorf("seed %d finds a violation in the original, too: %s", b.Seed, b.Problems)
	})
}
