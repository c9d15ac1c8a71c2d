package mutants

// List has a row for each mutant. Most mutants that schedules kill come first.
var List = []Mutant{
	{Name: "restart-guard", Wrong: "a master that restarted empty votes again immediately: two holders",
		Suite: Sim, Kinds: "amnesia", Shows: "two holders"},
	{Name: "identity-beyond-run-id", Wrong: "a master that became a replica and a master again has the same run id " +
		"and an old record, and votes: two holders",
		Suite: Sim, Kinds: "amnesia", Shows: "two holders"},
	{Name: "master-list", Wrong: "H98, H120: clients with different lists of masters of one deployment have a " +
		"majority each: two holders",
		Suite: Sim, Kinds: "strangers", Shows: "two holders"},
	{Name: "first-records", Wrong: "clients with different lists start on new masters simultaneously, and each writes " +
		"the first record of the masters that the other has not reached yet: two holders",
		Suite: Sim, Kinds: "strangers", Shows: "two holders"},
	{Name: "late-grants", Wrong: "a master that grants after the other masters have refused keeps the lease",
		Suite: "redlock", Tests: "RollbackOnlyWhereGranted"},
	{Name: "repair-session", Wrong: "a repair is sent on the current session of a master, although the master has " +
		"forgotten a vote since the round that justified the repair",
		Suite: Sim, Kinds: "amnesia", Shows: "rule \"missing\"", First: 23581},
	{Name: "tombstone", Wrong: "an acquire that arrives after its own release locks the name for no client",
		Suite: Sim, Kinds: "lateness", Shows: "after its end"},
	{Name: "fence", Wrong: "a delayed acquire wins with a token that is not above the token of an earlier holder",
		Suite: Sim, Kinds: "contention", Shows: "has token"},
	{Name: "ballot-bounds", Wrong: "once the fences have expired, a client whose clock has lost time wins with " +
		"an old token",
		Suite: Sim, Kinds: "oldness", Shows: "has token"},
	{Name: "recheck", Wrong: "a call returns a lock with less validity than requested, or with none",
		Suite: Sim, Kinds: "lateness", Shows: "of validity left"},
	{Name: "drift", Wrong: "keys expire on masters with fast clocks while a client with a slow clock still uses the " +
		"lock: two holders",
		Suite: Sim, Kinds: "clocks", Shows: "two holders"},
	{Name: "both-clocks", Wrong: "a client in a frozen virtual machine uses the clock that missed the freeze: two holders",
		Suite: Sim, Kinds: "freezes", Shows: "two holders"},
	{Name: "masters-time", Wrong: "a client whose machine stopped together with both clocks uses a lock that the " +
		"masters have granted to another client: two holders",
		Suite: Sim, Kinds: "paused", Shows: "two holders"},
	{Name: "unknown-outcomes", Wrong: "a lease whose reply was lost stays on its master for the TTL",
		Suite: Sim, Kinds: "lateness", Shows: "is still on master"},
	{Name: "stop-before-release", Wrong: "an extension whose reply arrives after the release restores the released lease",
		Suite: Sim, Kinds: "amnesia,suspension", Shows: "after its end"},
	{Name: "new-ids", Wrong: "an acquire is sent again with the same id while its release is in flight, which would " +
		"end the lease",
		Suite: Sim, Kinds: "contention,suspension", Shows: "once more"},
	{Name: "configured-quorum", Wrong: "clients that see different masters have a majority each: two holders",
		Suite: Sim, Kinds: "partition", Shows: "two holders"},
	{Name: "epoch", Wrong: "a client that has not followed the change uses only the old masters, while others use " +
		"only the next masters: two holders",
		Suite: Sim, Kinds: "changes", Shows: "two holders"},
	{Name: "together", Wrong: "a client uses only the next masters as soon as it is notified, while others still use " +
		"only the old masters: two holders",
		Suite: Sim, Kinds: "changes", Shows: "two holders"},
	{Name: "lost-masters", Wrong: "a holder whose masters have all lost their data keeps the lock until the end of " +
		"its validity, and no client lengthens a quarantine that is shorter than this validity: two holders",
		Suite: Sim, Kinds: "emptied", Shows: "two holders"},
	{Name: "one-second", Wrong: "a hanging first waiter blocks all other waiters until its place in the queue expires",
		Suite: Sim, Kinds: "crowd", Shows: "no client had the name"},
	{Name: "voters-leave", Wrong: "a waiter that can reach only a minority is first in the queue, and no other client " +
		"wins",
		Suite: Sim, Kinds: "lonely", Shows: "a lock took"},
	{Name: "minimum-asked", Wrong: "the masters free the name of a silent client before the min hold has ended",
		Suite: Sim, Kinds: "minimum", Shows: "the minimum hold of"},
	{Name: "durable-verified", Wrong: "a master without an append-only file is recorded as durable, and votes " +
		"immediately after a restart from a snapshot: two holders",
		Suite: "redlock", Tests: "ContradictedMastersAreNotDurable"},
	{Name: "extend-unsaved", Wrong: "a durable master whose append-only file is off extends locks, and after a restart " +
		"from the old file it grants them to others: two holders",
		Suite: "redlock", Tests: "LocksOnSwitchedFilesDoNotCount"},
	{Name: "aof-incomplete", Wrong: "a durable master votes while the append-only file that was switched on again is " +
		"incomplete: two holders",
		Suite: "redlock", Tests: "SwitchedFileMustBeComplete"},
	{Name: "minimum-from-grant", Wrong: "after a slow attempt, and with a clock that jumps, the masters free the name " +
		"of a silent client before the min hold has ended",
		Suite: "redlock", Tests: "MinHoldCountsFromTheGrant"},
	{Name: "quarantine-ends-first", Wrong: "a quarantine ends before a lease that was forgotten, by the difference of " +
		"correct clocks: two holders",
		Suite: "redlock", Tests: "QuarantineEndsByTheEarliestClock"},
	{Name: "writer-alone", Wrong: "a writer is granted the name while readers hold it: two holders",
		Suite: Sim, Kinds: "readers", Shows: "two holders"},
	{Name: "readers-wait", Wrong: "a reader is granted the name while the writer holds it: two holders",
		Suite: Sim, Kinds: "readers", Shows: "two holders"},
	{Name: "readers-fence", Wrong: "a writer wins with a token that is not above the token of an earlier reader",
		Suite: Sim, Kinds: "readers", Shows: "after token"},
	{Name: "reader-tombstone", Wrong: "a reader's acquire that arrives after its own release creates a share of no " +
		"client, and writers wait until this share expires",
		Suite: Sim, Kinds: "readers", Shows: "again, after its end"},
	{Name: "ballot-deadline", Wrong: "H176: a master whose clock has jumped forward gives a held lock away: two holders",
		Suite: Sim, Kinds: "jumps", Shows: "two holders"},
	{
		Name: "own-deadline",
		Wrong: "H176: a master with a right clock gives a held lock to a client whose estimate of the " +
			"masters' time is ahead: two holders",
		Suite: Sim,
		Kinds: "freezes,clocks",
		Shows: "rule \"free\"",
	},
	{
		Name: "ballot-bound",
		Wrong: "H176: a client's ballots follow the clock that has jumped forward, so the other masters " +
			"refuse them, and the master that has jumped takes a lease as expired by both clocks",
		Suite: "internal/ballot",
		Tests: "MinorityOfWrongClocks",
	},
	{
		Name: "until-bound",
		Wrong: "H176: the deadline of a lease follows a clock that has jumped back and will return: two " +
			"holders",
		Suite: "internal/ballot",
		Tests: "MinorityOfWrongClocks",
	},
	{Name: "extended-deadline", Wrong: "H176: an extension leaves the deadline in ballot time as it was, so a master " +
		"whose clock has jumped forward gives an extended lock away: two holders",
		Suite: Sim, Kinds: "jumps", Shows: "two holders", First: 12275},
	{
		Name: "share-deadline",
		Wrong: "H176: the deadline of a share follows only the master's clock, which was behind and " +
			"returns: two holders",
		Suite: "internal/scripts/reference",
		Tests: "SharesExpireByBothClocks",
	},
	{Name: "fence-ahead", Wrong: "H180: a ballot that follows a fence which is ahead ends a held lock on a master whose " +
		"clock has jumped forward: two holders",
		Suite: "redlock", Tests: "OneClockThatJumpsAfterAllWereAhead"},
	{Name: "share-ballot-deadline", Wrong: "H176: a master whose clock has jumped forward gives a share away: two holders",
		Suite: Sim, Kinds: "jumps", Shows: "two holders"},
	{
		Name: "leapt-clock",
		Wrong: "H176: a master whose clock was far ahead, so that its keys have expired, votes when its " +
			"clock is right again: two holders",
		Suite: Sim,
		Kinds: "jumps",
		Shows: "two holders",
	},
	{Name: "copied-client", Wrong: "H148: copies of a running client have leases with the same ids",
		Suite: "redlock", Tests: "CopiesOfOneClientExcludeEachOther"},
	{Name: "shared-heartbeat-lasts", Wrong: "H143: one heartbeat of another session counts forever",
		Suite: "internal/transport", Tests: "SharedHeartbeats"},
	{Name: "contexts-before-release", Wrong: "H169: a lock is released before the contexts of its holder end: two holders",
		Suite: "internal/lease", Tests: "ContextsEndBeforeMaxHoldRelease"},
	{Name: "reentry-on-request", Wrong: "goroutines that have the context of a lock, and lock its name, all hold the " +
		"lock at the same time, although none has asked to share it",
		Suite: "redlock", Tests: "ReentryIsRefusedByEachCall"},
	{Name: "one-set-repairs-voters", Wrong: "H123: a majority of only one set of masters is enough to repair masters " +
		"in quarantine",
		Suite: "internal/lease", Tests: "RepairNeedsMajority"},
	{Name: "abort-quarantine", Wrong: "H147: next masters in quarantine, which may have forgotten a lock, count when " +
		"a change is aborted",
		Suite: "redlock", Tests: "AbortAfterNextMastersHaveForgotten"},
	{Name: "stray-raised", Wrong: "H182: a change lets a master vote that has lost its data, and was admitted alone by " +
		"mistake",
		Suite: "internal/reconfig", Tests: "StrayRecordIsNotRaisedEarly"},
	{Name: "upcoming", Wrong: "H98: masters that are admitted for the next configuration vote for a client that has " +
		"only the next masters, beside clients of the old ones: two holders",
		Suite: "redlock", Tests: "PlainListOfNextMastersIsRefused"},
	{Name: "extend-incomplete", Wrong: "H183: a lock of the next masters alone is kept on masters that have forgotten " +
		"that they may act alone, so the change is cancelled beside it: two holders",
		Suite: "redlock", Tests: "LockEndsWithItsPermission"},
	{Name: "downgrade-fence", Wrong: "H125: only the first round of a downgrade raises the fence",
		Suite: "redlock", Tests: "DowngradeOfSeveralRoundsRaisesFences"},
	{Name: "import-votes", Wrong: "H145: masters that do not vote accept an import",
		Suite: "redlock", Tests: "MastersInQuarantineImportNothing|ClientWithOtherMastersImportsNothing"},
	{Name: "fresh-records", Wrong: "H81: old records count for the end of a quarantine",
		Suite: "internal/admission", Tests: "FinishNeedsRecordsReadSinceBegin"},
	{Name: "window-edge", Wrong: "H84: a ballot at the edge of the window is accepted",
		Suite: "internal/scripts/reference", Tests: "QuarantineOfTwoWindows"},
	{Name: "fence-kept", Wrong: "H84: fences are kept for only one second",
		Suite: "internal/scripts/reference", Tests: "AcceptedBallotsGrow"},
	{Name: "quarantine-since", Wrong: "H91: only the master's clock determines when its quarantine began",
		Suite: "internal/admission", Tests: "QuarantineBeginsAtTheLaterClock"},
	{Name: "repair-record", Wrong: "H96: a repair is accepted under another admission record",
		Suite: "internal/scripts/reference", Tests: "AcquireAndRepairNeedTheRecordOfTheirRound"},
	{Name: "repair-majority", Wrong: "H97: a repair needs no majority",
		Suite: "internal/lease", Tests: "RepairNeedsMajority"},
	{Name: "downgrade-needs-share", Wrong: "a master that has lost a writer's lock accepts its downgrade",
		Suite: "redlock", Tests: "LostWriterCannotDowngrade"},
	{Name: "linger-token", Wrong: "a lock that is taken over keeps its token",
		Suite: "redlock", Tests: "Linger"},
	{Name: "record-returns", Wrong: "H161: an old admission record comes back from a backup without the locks, and its " +
		"master votes, although the client has read a later record: two holders",
		Suite: Sim, Kinds: "records", Shows: "two holders"},
	{
		Name: "durable-bare-majority",
		Wrong: "H162: a lock on a bare majority is kept when the file of one of its masters is " +
			"off. After a crash, this master votes at once: two holders",
		Suite: Sim,
		Kinds: "durables",
		Shows: "two holders",
	},
	{
		Name:  "durable-breaks",
		Wrong: "H162: a master whose file is off grants locks, and after a crash it votes without them",
		Suite: Sim,
		Kinds: "durables",
		Shows: "two holders",
	},
	{
		Name: "shard-shown-now",
		Wrong: "H160: a client with the old number of shards admits the masters of a shard, because " +
			"it has not read the records of the other shards since the change: two holders",
		Suite: "redlock",
		Tests: "LateLookAfterFewerShards",
	},
	{
		Name: "shares-live-on",
		Wrong: "H176: the clock of a master that is far behind jumps, and expires the shares of an RWLock before the fence " +
			"that ballots follow: two holders",
		Suite: "internal/scripts/reference",
		Tests: "SharesLiveAsLongAsTheFenceThatBallotsFollow",
	},
	{
		Name: "missed-layout",
		Wrong: "H179: a client with an earlier number of shards claims the masters of its only set, which have lost " +
			"their records since: two holders",
		Suite: "internal/admission",
		Tests: "MissedChangeOfLayout",
	},
	{
		Name: "shard-majority",
		Wrong: "H160: one master that was down when the number of shards changed returns with the old " +
			"record, and clients with the old number admit the masters of its shard: two holders",
		Suite: "internal/admission",
		Tests: "Evidence",
	},
	{Name: "layout-closed-first", Wrong: "H160: a change of the number of shards does not first close all masters, so " +
		"masters that are given up still vote for the old layout: two holders",
		Suite: "redlock", Tests: "LockHeldWhileShardsChange"},
	{Name: "unproven-extends", Wrong: "H160: a lock that is held while the number of shards changes is extended, while " +
		"another client acquires the name in its new shard: two holders",
		Suite: "redlock", Tests: "LockHeldWhileShardsChange"},
	{Name: "idle-validity", Wrong: "an idle lock is used beyond its validity",
		Suite: "redlock", Tests: "Linger"},
	{Name: "slot-beside-lock", Wrong: "a slot of a semaphore and a plain lock of its name are held at the same time",
		Suite: "redlock", Tests: "NameHasOneKind"},
	{Name: "slot-size", Wrong: "slots of semaphores of different sizes, with one name, are held at the same time",
		Suite: "redlock", Tests: "NameHasOneKind"},
	{Name: "slot-unmarked", Wrong: "a slot does not mark its name: a plain lock of the name is held at the same time",
		Suite: "redlock", Tests: "NameHasOneKind"},
	{Name: "mark-life", Wrong: "the mark of a semaphore's name expires while a slot is held: a plain lock of its name " +
		"is held at the same time",
		Suite: "redlock", Tests: "NameHasOneKind"},
	{Name: "other-kind", Wrong: "a reader and the holder of a plain lock have one name at the same time",
		Suite: "redlock", Tests: "NameHasOneKind"},
	{Name: "last-descendant", Wrong: "H173: redlock run does not wait until the last descendant of the command has ended",
		Suite: "cmd/redlock", Tests: "NoDescendantOutlivesRun"},
}
