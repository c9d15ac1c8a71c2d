package redlock_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/race"
)

// A protection is an edit of a source file that breaks a safeguard. The named tests must fail with it; the simulator
// would not, or not soon.
type protection struct{ file, old, edited, in, tests string }

var protections = map[string]protection{
	"the group in the records": {"internal/admission/list.go", "r.Group != f.Group || r.Epoch > c.Epoch",
		"r.Epoch > c.Epoch",
		".", "VirtualUnlikeGroupsNeverBothWin|VirtualGroupsBeginWhenAllMastersWereSeen"},
	"all groups are seen before they begin": {groupFile, "f.Agreed || f.Begun()", "true",
		".", "VirtualUnlikeGroupsNeverBothWin|VirtualGroupsBeginWhenAllMastersWereSeen"},
	"all masters of all groups": {groupFile, "if fact := &f.Facts[j]; !fact.shown() || fact.Record.Group != f.Group {",
		"if fact := &f.Facts[j]; j < 2 && (!fact.shown() || fact.Record.Group != f.Group) {",
		".", "VirtualUnlikeGroupsNeverBothWin|VirtualGroupsBeginWhenAllMastersWereSeen"},
	"H99 callbacks have a goroutine of their own": {dispatchFile, "\t\tq.running = true\n\t\tgo q.run()",
		"\t\tq.running = true\n\t\tq.mu.Unlock()\n\t\tq.run()\n\t\tq.mu.Lock()", ".", "BlockedCallback"},
	"H99 dropped events are counted": {dispatchFile, "q.dropped++", "", ".", "SlowCallback"},
	"H99 expired locks: contexts end before the log": {managerFile,
		"\tn.endContexts()\n\tswitch {\n\tcase n.cause != nil:\n\t\treturn func() { l.report(n) }",
		"\tl.notify(n)\n\tswitch {\n\tcase n.cause != nil:\n\t\treturn nil", ".", "ContextsEndBeforeTheLog"},
	"H99 forgetful masters: contexts end before the log": {managerFile,
		"reports = append(reports, func() { l.report(n) })",
		"l.report(n)", ".", "ContextsEndBeforeTheLog"},
	"H99 closed locks: contexts end before the log": {managerFile, "releases = append(releases, func() {",
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
	"H102 one parent has one context": {"internal/lease/owner.go",
		"return h.bind(parent, newOwnerContext(parent, []*Hold{h}, false))",
		"return Owning(parent, []*Hold{h}, false)",
		"./internal/lease", "ContextsAreNotKept"},
	"H117 Drain waits for what is held": {"locker.go", "for len(l.grants.All()) > 0 || l.calls.Load() > 1 {",
		"for false {",
		".", "VirtualDrainWaitsForDo"},
	"H117 Drain lets no new call in": {"locker.go", "if l.drains.Load() && !lease.Owns(ctx, l.grants) {", "if false {",
		".", "VirtualDrainWaitsForDo"},
	"H117 Drain lets the work under way lock": {"locker.go", "l.drains.Load() && !lease.Owns(ctx, l.grants)",
		"l.drains.Load()",
		".", "VirtualDrainWaitsForDo"},
	"a recall ends an idle lock": {"internal/waitqueue/linger.go", "l != nil && l.ID == h.Lease", "l != nil && false",
		".", "Linger"},
	"a lost recall costs others a TTL at most": {"internal/lease/linger.go",
		"now.Sub(l.tokens.won) >= l.ownership.terms.TTL, ", "",
		".", "LingerWithoutMessagesEnds"},
	"a lock lingers only if it can be recalled": {"internal/waitqueue/linger.go", ", !q.receivingLocked():", ":", ".",
		"Linger"},
	"a recalled lock in use refuses other calls": {"internal/lease/linger.go", "tell := l.state == live &&",
		"tell := false &&",
		".", "Linger"},
	"a lock that is taken over has a new token": {"internal/lease/linger.go", "\tl.tokens.next++\n", "", ".", "Linger"},
	"an idle lock is used for its validity only": {"internal/lease/linger.go",
		" && l.validity.left(now) >= terms.Least", "",
		".", "Linger"},
	"a lock lingers beside no local call that asks": {"internal/waitqueue/linger.go", ", nq.contender != nil, len",
		", len",
		".", "LingerWhileACallAsks"},
	"a lock that was waited for does not linger": {"internal/waitqueue/contend.go",
		"if n.failure != nil && c.Terms", "if false && c.Terms",
		".", "LingerAmongWaiters"},
	"a recall may come before the lock is known to be won": {"internal/waitqueue/linger.go", "q.Manager.Trying(h.Lease)",
		"q.Holder(h.Name)",
		".", "LingerIsRecalledEarly"},
	"the inbox is not kept for a grant that was replaced": {"internal/waitqueue/local.go",
		"if old := nq.holder; old != nil {",
		"if old := nq.holder; false {",
		".", "LingerIsReplaced"},
	"an idle lock is repaired when it is taken over": {"internal/lease/manager.go",
		"(l.state == live || l.state == idle) && (",
		"l.state == live && (",
		".", "LingerIsRepaired"},
	"an idle lock is offered after its end was told": {"internal/lease/release.go", "\t\tl.offer() // ", "\t\t// ",
		".", "Linger"},
	"a lock lingers beside no local waiter": {"internal/waitqueue/linger.go", ", len(nq.waiting) > 0:", ":",
		".", "Linger"},
	"each reader's share ends by itself": {reference + "shared.go", "c.state.SetScore(c.now, lock, c.arg(2), end)",
		"for _, f := range c.typed(lock, SortedSet).Fields {\n\t\t\tc.state.SetScore(c.now, lock, f.Name, end)\n\t\t}",
		".", "VirtualAReaderThatDiesFreesItsShareAlone"},
	"a reader that is let in wakes the next": {reference + "shared.go", "if queued && !writer {", "if false {",
		".", "VirtualTheOrderIsThatOfTheQueue|VirtualAWriterIsNotStarvedByReaders"},

	"a downgrade needs the writer's share": {reference + "shared.go", "a.mode == \"downgrade\" && mine == 0 && !replaces:",
		"false:",
		".", "VirtualAWriterThatWasLostBecomesNoReader"},

	"H80 the quarantine on all before the longest TTL": {"masters.go",
		"if err := l.raiseQuarantines(ctx, all, g); err != nil {", "if err := l.raiseQuarantines(ctx, all, g); false {",
		".", "TheGuardTimeIsRaisedOnAllMastersOrNone"},
	"H80 masters that vote accept the same TTLs": {"internal/admission/judge.go", "agreed := f.agreedTTL(i); agreed > 0",
		"agreed := f.largest().Longest; true",
		"./internal/admission", "UnlikeMaxTTLsOfNewMasters"},
	"H81 records read since the quarantine began": {"internal/admission/list.go", "if !own.Won(fresh) {", "if false {",
		"./internal/admission", "AnEndNeedsRecordsReadSinceTheBegin"},
	"H82 a little after the first hint": {contendFile, "leastDelay = 2 * time.Millisecond", "leastDelay = time.Second",
		".", "VirtualAWaiterAsksALittleAfterTheFirstHint"},
	"H82 quiet asks do not make hints slower": {contendFile, "c.woken == 0 {\n\t\tn.wakeUps = 0",
		"false {\n\t\tn.wakeUps = 0",
		".", "VirtualAWaiterAsksALittleAfterTheFirstHint"},
	"H83 a repair minds no queue": {reference + "acquire.go", "case queued && a.mode == \"acquire\":", "case queued:",
		".", "VirtualARepairMindsNeitherTheQueueNorTheQuarantine"},
	"H83 a repair works in quarantine": {repairFile, "		return missing\n	case", "		return missing & r.View.Voting\n	case",
		".", "VirtualARepairMindsNeitherTheQueueNorTheQuarantine"},
	"H84 fences are kept for 60 s": {reference + "eval.go", "scripts.Millis(scripts.FenceKept)", "1000",
		"../internal/scripts/reference", "AcceptedBallotsGrow"},
	"H84 a ballot at the edge of the window": {reference + "acquire.go", "a.first <= now-window", "a.first < now-window",
		"../internal/scripts/reference", "QuarantineOfTwoWindows"},
	"H84 a share's ballot at the edge of the window": {reference + "shared.go", "a.first <= now-window",
		"a.first < now-window",
		"../internal/scripts/reference", "QuarantineOfTwoWindows"},
	"H86 eight are told": {reference + "queue.go", "mostWoken    = 8", "mostWoken    = 1 << 20",
		"../internal/scripts/reference", "OneScriptWorksThroughABoundedNumberOfWaiters"},
	"H86 five hundred are dropped": {reference + "queue.go", "mostDropped  = 500", "mostDropped  = 1 << 20",
		"../internal/scripts/reference", "OneScriptWorksThroughABoundedNumberOfWaiters"},
	"H88 the delay after a first hint doubles": {contendFile, " << min(n.wakeUps, 9)", "",
		".", "VirtualThePauseAfterAFirstHintDoubles"},
	"H90 identities count since the last confirmation": {"internal/lease/lease.go", "m.has|set, m.lost&^set",
		"m.has|set, m.lost",
		".", "VirtualIdentitiesCountSinceTheLastConfirmation"},
	"H91 since is the later of own time and median": {reference + "admit.go", "plain(max(now, median))", "plain(now)",
		"./internal/admission", "ClocksThatAreSetForwardDoNotShortenAQuarantine"},
	"H93 no voter beyond 15 s": {contendFile, "if !n.round.View.Masters[i].ClockOff {", "if true {",
		".", "VirtualAMasterWithAWrongClockIsNoVoter"},
	"H103 an undecided call asks again": {"internal/waitqueue/acquire.go",
		"f == nil || !undecided(f) {", "f == nil || f.N >= 0 {",
		".", "VirtualOneShotCallsAtOneInstantHaveOneWinner"},
	"H103 held needs one lease with a majority": {"internal/round/failure.go", "case held, r.tally",
		"case held || true, r.tally",
		".", "VirtualSplitVotesAreNotHeld"},
	"H103 a clock that is off has no vote": {"internal/round/failure.go", "if r.View.Masters[i].ClockOff {", "if false {",
		".", "VirtualClocksThatAreOffAreNotHeld"},
	"H103 a name that is kept for a waiter is not held": {"internal/waitqueue/acquire.go",
		"f.Holder == \"\" || f.Lingers", "f.Lingers",
		".", "VirtualANameKeptForADeadWaiterIsNotHeld"},
	"H105 no prefix ends in a colon": {"../internal/scripts/keys.go", "case strings.HasSuffix(base, \":\"):",
		"case false:",
		"../internal/scripts", "PrefixNameAndLabelAreChecked"},
	"H118 the masters' time counts": {leapFile, "l.missed.Add(int64(by))", "_ = by",
		".", "VirtualAMachineThatStopsWithBothClocksLosesItsLock"},
	"H118 a majority shows a leap": {leapFile, "q := quorum.Quorum(c.members.Len())", "q := quorum.Quorum(1)",
		".", "VirtualClocksOfAMinorityEndNoLock"},
	"H118 a majority shows it together": {leapFile, "<= leapWindow {", "<= time.Hour {",
		".", "VirtualClocksOfAMinorityEndNoLock"},
	"H145 an import needs masters that vote": {"internal/lease/import.go", "need := round.NeedsVote",
		"need := round.NeedsRecord", ".",
		"VirtualMastersInQuarantineImportNothing|VirtualAProgramWithOtherMastersImportsNothing"},
	"H96 a repair follows the view of its round": {repairFile, "m, view := l.m, r.View", "m, view := l.m, l.m.View()",
		".", "Repair"},
	"H96 a repair under another record is rejected": {reference + "acquire.go", "!strings.HasPrefix(there, a.stamp) {",
		"!strings.HasPrefix(there, a.stamp) && a.mode != \"repair\" {", ".", "Repair"},
	"H96 a repair of a share under another record is rejected": {reference + "shared.go",
		"!strings.HasPrefix(there, a.stamp) {",
		"!strings.HasPrefix(there, a.stamp) && a.mode != \"repair\" {", ".", "Repair"},
	"H97 a repair needs a majority": {repairFile, "	return 0\n}", "	return missing\n}", ".", "RepairNeedsMajority"},
	"H125 each round of a downgrade raises the fence": {reference + "shared.go", "} else if a.last > reads {",
		"} else if mine == 0 && a.last > reads {", ".", "DowngradeOfSeveralRoundsRaisesFences"},
	"H125 a writer that waits no more leaves": {reference + "shared.go", "first+\"\\n\"+c.key(1)+\"\\n\"", "\"\"",
		".", "LateAcquireOfAbsentWriterLetsReadersIn"},
	"H123 one set repairs masters that vote": {repairFile, "return missing & r.View.Voting", "return missing",
		".", "RepairByOneSet"},
	"H94 a pending release names no waiter": {"internal/lease/release.go",
		"scripts.Ending{Grants: grants, Ballot: ballot}",
		"scripts.Ending{Grants: grants, Ballot: ballot, Waiter: l.ticket}", ".", "VirtualAnOwedReleaseNamesNoWaiter"},

	"H119 pending releases are bounded in bytes": {transportDir + "/pending.go",
		" ||\n\t\tl.bytes+more > maxPendingBytes", "",
		transportDir, "PendingReleasesAreBoundedInBytes"},
	"H101 the time in the queue does not count": {transportDir + "/pipe/pipe.go",
		"max(oldest, p.lastRead.Load())", "oldest",
		transportDir, "TimeInTheQueueDoesNotCount"},
	"H101 the rounds under way are bounded": {limiterFile, "if l.active < l.limit && l.waiting.Len() == 0 {", "if true {",
		".", "Overload"},
	"H101 a turn is used by a call that has waited too long": {limiterFile, "if errors.Is(err, round.ErrOverloaded) {",
		"if false {", "./internal/lease", "LimiterUsesATurnThatComesLate"},
	"H101 the bound follows the delay": {limiterFile, "\tif inTime {", "\tif true {",
		"./internal/lease", "LimiterFollowsTheDelay"},
	"H101 calls of one client for one name share attempts": {"internal/waitqueue/attempt.go", "if a == nil {", "if true {",
		".", "TryLocksShareAttempts"},

	"H111 names are UTF-8": {"../internal/scripts/keys.go", "case !utf8.ValidString(name):", "case false:",
		"../internal/scripts", "PrefixNameAndLabelAreChecked"},
	"H112 scripts are loaded or sent": {"../internal/scripts/rights.go", "return scriptLoad || eval",
		"return scriptLoad && eval",
		"../internal/transport", "ScriptsAreLoadedOrSent|CheckFindsWhatIsSetUpWrongly"},
	"H113 only missing rights are told": {"../internal/transport/check_rules.go", "strings.Join(slices.Compact(f.grants)",
		"\"-@all \"+strings.Join(slices.Compact(f.grants)", "../internal/transport", "CheckAdviceTakesNoRightsAway"},
	"H114 advice in errors": {"../internal/transport/errors.go", "do != \"\"", "false", "../internal/transport",
		"ErrorsSayWhatToDo"},
	"H114 IPv6 addresses have brackets": {"../internal/transport/names.go", "strings.Count(u.Host, \":\") > 1", "false",
		"../internal/transport",
		"IPv6Addresses"},
	"H115 an unknown time is left out": {"errors.go", "if !e.since.IsZero() {", "if true {", ".", "LockErrorText"},
	"H115 a hint is no master": {"log.go", "attrs = append(attrs, slog.String(\"hint\", mayAdmit))", "", ".",
		"VirtualLogInJSON"},
	"H116 other databases are told": {transportDir + "/check_rules.go", "if len(f.databases) > 0 {", "if false {",
		transportDir, "CheckFindsWhatIsSetUpWrongly"},
}

const (
	transportDir = "../internal/transport"
	groupFile    = "internal/admission/group.go"
	judgeFile    = "internal/admission/judge.go"
	leapFile     = "internal/ballot/leap.go"
	contendFile  = "internal/waitqueue/contend.go"
	dispatchFile = "internal/dispatch/queue.go"
	managerFile  = "internal/lease/manager.go"
	repairFile   = "internal/lease/repair.go"
	limiterFile  = "internal/lease/limiter.go"
	reference    = "../internal/scripts/reference/"
)

// Each protection is removed, one after the other, and the named tests must fail.
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
				t.Fatalf("%s must contain exactly once: %s", source, p.old)
			}
			if !long.Enabled() || race.Enabled {
				return // only check that the edits apply
			}
			if _, err := exec.LookPath("redis-server"); err != nil && p.in == transportDir {
				t.Skip("needs redis-server: without it the tests of the pool on real servers are skipped")
			}
			t.Parallel()
			missed(t, source, strings.Replace(string(text), p.old, p.edited, 1), p.in, "^Test("+p.tests+")$")
		})
	}
}

// missed fails the test unless the matching tests of a package fail with the text in place of a source file.
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
	args := []string{"test", "-overlay", list, "-count=1", "-failfast", "-run", tests, in}
	if in == "." || in == transportDir { // some of the tests are long
		args = append(args, "-long")
	}
	cmd := exec.Command("go", args...)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "--- FAIL") {
		t.Errorf("the tests did not fail: %v\n%s", err, out)
	} else {
		t.Logf("%.400s", out)
	}
}
