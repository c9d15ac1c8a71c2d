package redlock_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/race"
)

// A protection is one that the tests named miss, and the simulator would not, or not soon.
type protection struct{ file, old, edited, in, tests string }

var protections = map[string]protection{
	"the group in the records": {"internal/admission/list.go", "r.Group != f.Group || r.Epoch > c.Epoch", "r.Epoch > c.Epoch",
		".", "VirtualUnlikeGroupsNeverBothWin|VirtualGroupsBeginWhenAllMastersWereSeen"},
	"all groups are seen before they begin": {groupFile, "f.Agreed || f.Begun()", "true",
		".", "VirtualUnlikeGroupsNeverBothWin|VirtualGroupsBeginWhenAllMastersWereSeen"},
	"all masters of all groups": {groupFile, "if fact := &f.Facts[j]; !fact.shown() || fact.Record.Group != f.Group {",
		"if fact := &f.Facts[j]; j < 2 && (!fact.shown() || fact.Record.Group != f.Group) {",
		".", "VirtualUnlikeGroupsNeverBothWin|VirtualGroupsBeginWhenAllMastersWereSeen"},
	"H99 callbacks have a goroutine of their own": {dispatchFile, "\t\tq.running = true\n\t\tgo q.run()",
		"\t\tq.running = true\n\t\tq.mu.Unlock()\n\t\tq.run()\n\t\tq.mu.Lock()", ".", "BlockedCallback"},
	"H99 dropped events are counted": {dispatchFile, "q.dropped++", "", ".", "SlowCallback"},
	"H99 expired locks: contexts end before the log": {keeperFile,
		"\tn.endContexts()\n\tswitch {\n\tcase n.cause != nil:\n\t\treturn func() { g.report(n) }",
		"\tg.tell(n)\n\tswitch {\n\tcase n.cause != nil:\n\t\treturn nil", ".", "ContextsEndBeforeTheLog"},
	"H99 forgetful masters: contexts end before the log": {keeperFile, "reports = append(reports, func() { g.report(n) })",
		"g.report(n)", ".", "ContextsEndBeforeTheLog"},
	"H99 closed locks: contexts end before the log": {keeperFile, "releases = append(releases, func() {",
		"(func(f func()) { f() })(func() {", ".", "ContextsEndBeforeTheLog"},
	"H100 panics are recovered": {dispatchFile, "if p := recover(); p != nil {", "if p := any(nil); p != nil {",
		".", "PanickingDo"},
	"H121 an unconfirmed release is no error of Do": {"do.go", "\tcase err != nil:\n\t\tk.l.",
		"\tcase err != nil:\n\t\treturn err\n\tcase false:\n\t\tk.l.", ".", "DoWithUnconfirmedRelease"},
	"H121 inner errors are hidden": {"do.go", "return &functionError{err}", "return err",
		".", "DoTellsOuterAndInnerErrorsApart"},
	"H121 the loss of the outer lock is joined": {"do.go", "case !errors.Is(cause, ErrReleased):", "case false:",
		".", "DoTellsOuterAndInnerErrorsApart"},
	"H122 a leader that lost campaigns again": {"lead.go", "case err == nil && lost == nil:", "case err == nil:",
		".", "LeadAfterLoss"},
	"H122 a shutdown is no failure": {"lead.go", "case ctx.Err() != nil:", "case false:", ".", "LeadAtShutdown"},
	"H102 one parent has one context": {"internal/grant/owner.go", "return h.bind(parent, newOwning(parent, []*Handle{h}, false))",
		"return Owning(parent, []*Handle{h}, false)",
		"./internal/grant", "ContextsAreNotKept"},
	"H117 Drain waits for what is held": {"locker.go", "for len(l.grants.All()) > 0 || l.calls.Load() > 1 {", "for false {",
		".", "VirtualDrainWaitsForDo"},
	"H117 Drain lets no new call in": {"locker.go", "if l.drains.Load() && !grant.Owns(ctx, l.grants) {", "if false {",
		".", "VirtualDrainWaitsForDo"},
	"H117 Drain lets the work under way lock": {"locker.go", "l.drains.Load() && !grant.Owns(ctx, l.grants)", "l.drains.Load()",
		".", "VirtualDrainWaitsForDo"},
	"each reader's share ends by itself": {reference + "shared.go", "c.state.SetScore(c.now, lock, c.arg(2), end)",
		"for _, f := range c.typed(lock, SortedSet).Fields {\n\t\t\tc.state.SetScore(c.now, lock, f.Name, end)\n\t\t}",
		".", "VirtualAReaderThatDiesFreesItsShareAlone"},
	"a reader that is let in tells the next": {reference + "shared.go", "if queued && !writer {", "if false {",
		".", "VirtualTheOrderIsThatOfTheQueue|VirtualAWriterIsNotStarvedByReaders"},

	"a downgrade needs the writer's share": {reference + "shared.go", "a.mode == \"downgrade\" && mine == 0 && !replaces:",
		"false:",
		".", "VirtualAWriterThatWasLostBecomesNoReader"},

	"H80 the quarantine on all before the longest TTL": {"masters.go",
		"\t\tif err != nil {\n\t\t\treturn err\n\t\t}\n\t\treturn l.write(", "\t\t_ = err\n\t\treturn l.write(",
		".", "TheGuardTimeIsRaisedOnAllMastersOrNone"},
	"H81 records read since the quarantine began": {"internal/admission/list.go", "if !own.Won(fresh) {", "if false {",
		"./internal/admission", "AnEndNeedsRecordsReadSinceTheBegin"},
	"H82 a little after the first hint": {contendFile, "leastDelay = 2 * time.Millisecond", "leastDelay = time.Second",
		".", "VirtualAWaiterAsksALittleAfterTheFirstHint"},
	"H82 quiet asks do not make hints slower": {contendFile, "c.hinted == 0 {\n\t\tn.hinted = 0", "false {\n\t\tn.hinted = 0",
		".", "VirtualAWaiterAsksALittleAfterTheFirstHint"},
	"H83 a repair minds no queue": {reference + "acquire.go", "case queued && a.mode == \"acquire\":", "case queued:",
		".", "VirtualARepairMindsNeitherTheQueueNorTheQuarantine"},
	"H83 a repair works in quarantine": {repairFile, "		return missing\n	case", "		return missing & r.View.Voting\n	case",
		".", "VirtualARepairMindsNeitherTheQueueNorTheQuarantine"},
	"H84 fences are kept for 60 s": {reference + "eval.go", "scripts.Millis(scripts.FenceKept)", "1000",
		"../internal/scripts/reference", "AcceptedBallotsGrow"},
	"H84 a ballot at the edge of the window": {reference + "acquire.go", "a.first <= now-window", "a.first < now-window",
		"../internal/scripts/reference", "QuarantineOfTwoWindows"},
	"H84 a share's ballot at the edge of the window": {reference + "shared.go", "a.first <= now-window", "a.first < now-window",
		"../internal/scripts/reference", "QuarantineOfTwoWindows"},
	"H86 eight are told": {reference + "queue.go", "mostWoken    = 8", "mostWoken    = 1 << 20",
		"../internal/scripts/reference", "OneScriptWorksThroughABoundedNumberOfWaiters"},
	"H86 five hundred are dropped": {reference + "queue.go", "mostDropped  = 500", "mostDropped  = 1 << 20",
		"../internal/scripts/reference", "OneScriptWorksThroughABoundedNumberOfWaiters"},
	"H88 the delay after a first hint doubles": {contendFile, " << min(n.hinted, 9)", "",
		".", "VirtualThePauseAfterAFirstHintDoubles"},
	"H90 identities count since the last confirmation": {"internal/grant/grant.go", "m.has|set, m.lost&^set", "m.has|set, m.lost",
		".", "VirtualIdentitiesCountSinceTheLastConfirmation"},
	"H91 since is the later of own time and median": {reference + "admit.go", "plain(max(now, median))", "plain(now)",
		"./internal/admission", "ClocksThatAreSetForwardDoNotShortenAQuarantine"},
	"H93 no voter beyond 15 s": {contendFile, "if !n.round.View.Masters[i].ClockOff {", "if true {",
		".", "VirtualAMasterWithAWrongClockIsNoVoter"},
	"H103 an undecided call asks again": {"internal/queue/ask.go", "f == nil || !undecided(f) {", "f == nil || f.N >= 0 {",
		".", "VirtualOneShotCallsAtOneInstantHaveOneWinner"},
	"H103 held needs one lease with a majority": {"internal/round/failure.go", "case held, r.tally", "case held || true, r.tally",
		".", "VirtualSplitVotesAreNotHeld"},
	"H103 a clock that is off has no vote": {"internal/round/failure.go", "if r.View.Masters[i].ClockOff {", "if false {",
		".", "VirtualClocksThatAreOffAreNotHeld"},
	"H103 a name that is kept for a waiter is not held": {"internal/queue/ask.go", "&& f.Holder == \"\")", "&& false)",
		".", "VirtualANameKeptForADeadWaiterIsNotHeld"},
	"H105 no prefix ends in a colon": {"../internal/scripts/keys.go", "case strings.HasSuffix(base, \":\"):", "case false:",
		"../internal/scripts", "PrefixNameAndLabelAreChecked"},
	"H118 the masters' time counts": {leapFile, "l.missed.Add(int64(by))", "_ = by",
		".", "VirtualAMachineThatStopsWithBothClocksLosesItsLock"},
	"H118 a majority shows a leap": {leapFile, "q := quorum.Quorum(c.members.Len())", "q := quorum.Quorum(1)",
		".", "VirtualClocksOfAMinorityEndNoLock"},
	"H118 a majority shows it together": {leapFile, "<= leapWindow {", "<= time.Hour {",
		".", "VirtualClocksOfAMinorityEndNoLock"},
	"H145 an import needs masters that vote": {"internal/grant/import.go", "need := round.NeedsVote",
		"need := round.NeedsRecord", ".", "VirtualMastersInQuarantineImportNothing|VirtualAProgramWithOtherMastersImportsNothing"},
	"H96 a repair follows the view of its round": {repairFile, "k, view := g.k, r.View", "k, view := g.k, g.k.View()",
		".", "Repair"},
	"H96 a repair under another record is rejected": {reference + "acquire.go", "!strings.HasPrefix(there, a.stamp) {",
		"!strings.HasPrefix(there, a.stamp) && a.mode != \"repair\" {", ".", "Repair"},
	"H96 a repair of a share under another record is rejected": {reference + "shared.go", "!strings.HasPrefix(there, a.stamp) {",
		"!strings.HasPrefix(there, a.stamp) && a.mode != \"repair\" {", ".", "Repair"},
	"H97 a repair needs a majority": {repairFile, "	return 0\n}", "	return missing\n}", ".", "RepairNeedsMajority"},
	"H125 each round of a downgrade raises the fence": {reference + "shared.go", "} else if a.last > reads {",
		"} else if mine == 0 && a.last > reads {", ".", "DowngradeOfSeveralRoundsRaisesFences"},
	"H125 a writer that waits no more leaves": {reference + "shared.go", "first+\"\\n\"+c.key(1)+\"\\n\"", "\"\"",
		".", "LateAcquireOfAbsentWriterLetsReadersIn"},
	"H123 one set repairs masters that vote": {repairFile, "return missing & r.View.Voting", "return missing",
		".", "RepairByOneSet"},
	"H94 an owed release names no waiter": {"internal/grant/release.go", "scripts.Ending{Grants: grants, Ballot: ballot}",
		"scripts.Ending{Grants: grants, Ballot: ballot, Waiter: g.ticket}", ".", "VirtualAnOwedReleaseNamesNoWaiter"},

	"H119 owed releases are bounded in bytes": {"../pool/owed.go", " || l.bytes+more > maxOwedBytes", "",
		"../pool", "OwedReleasesAreBoundedInBytes"},
	"H101 the time in the queue does not count": {"../pool/internal/pipe/pipe.go", "max(oldest, p.heard.Load())", "oldest",
		"../pool", "TimeInTheQueueDoesNotCount"},
	"H101 the rounds under way are bounded": {limiterFile, "if l.active < l.limit && l.waiting.Len() == 0 {", "if true {",
		".", "Overload"},
	"H101 a turn is used by a call that has waited too long": {limiterFile, "if errors.Is(err, round.ErrOverloaded) {",
		"if false {", "./internal/grant", "LimiterUsesATurnThatComesLate"},
	"H101 the bound follows the delay": {limiterFile, "\tif inTime {", "\tif true {",
		"./internal/grant", "LimiterFollowsTheDelay"},
	"H101 calls of one client for one name share attempts": {"internal/queue/attempt.go", "if a == nil {", "if true {",
		".", "TryLocksShareAttempts"},
}

const (
	groupFile    = "internal/admission/group.go"
	judgeFile    = "internal/admission/judge.go"
	leapFile     = "internal/ballot/leap.go"
	contendFile  = "internal/queue/contend.go"
	dispatchFile = "internal/dispatch/queue.go"
	keeperFile   = "internal/grant/keeper.go"
	repairFile   = "internal/grant/repair.go"
	limiterFile  = "internal/grant/limiter.go"
	reference    = "../internal/scripts/reference/"
)

// Each protection is taken out, one after the other: the tests that are named must fail.
func TestWhatIsTakenOutIsMissed(t *testing.T) {
	for name, p := range protections {
		t.Run(name, func(t *testing.T) {
			source, err := filepath.Abs(p.file)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(text), p.old) != 1 {
				t.Fatalf("this must be once in %s: %s", source, p.old)
			}
			if testing.Short() || race.Enabled {
				return // only that the edits apply
			}
			t.Parallel()
			missed(t, source, strings.Replace(string(text), p.old, p.edited, 1), p.in, "^Test("+p.tests+")$")
		})
	}
}

// missed fails the test where the tests of a package that match pass with another text in the place of a file.
func missed(t *testing.T, source, text, in, tests string) {
	t.Helper()
	dir := t.TempDir()
	edited, list := filepath.Join(dir, filepath.Base(source)), filepath.Join(dir, "overlay.json")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: edited}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{edited: text, list: string(overlay)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-overlay", list, "-count=1", "-failfast", "-run", tests, in)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "--- FAIL") {
		t.Errorf("it is not missed: %v\n%s", err, out)
	} else {
		t.Logf("%.400s", out)
	}
}
