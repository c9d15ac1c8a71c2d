package redlockinfo

import "fmt"

// A Verdict says whether locks can be acquired, and what is wrong with the masters. All its fields are about one
// instant, and CanLock, Spare and the Findings agree: a missing quorum is a finding, and so is each reason why a master
// cannot grant a lock.
type Verdict struct {
	CanLock bool // whether a quorum of each shard can grant a lock
	// Spare is the number of masters that may still fail, in the worst case, before no lock can be acquired. It is 0 if
	// CanLock is false.
	Spare    int
	Quorums  []Quorum
	Masters  []Master // shard by shard, in the order of the configuration
	Findings []Finding
}

// A Quorum is the number of masters of one set that a lock needs. During a change of the masters, each shard has two
// sets.
type Quorum struct {
	Shard  int    // from 1; 0 without shards
	Set    string // "old" or "next" during a change of the masters; else ""
	Able   int    // number of masters that can grant a lock
	Needed int    // number of masters that a lock needs
	N      int    // number of all masters
}

// Spare returns the number of masters of q that may still fail before no lock can be acquired. It is negative if no
// lock can be acquired now.
func (q Quorum) Spare() int { return q.Able - q.Needed }

// String returns q in words, such as "2 of 3 old masters vote, 2 are needed".
func (q Quorum) String() string {
	masters := "masters"
	if q.Set != "" {
		masters = q.Set + " masters"
	}
	return fmt.Sprintf("%d of %d %s vote, %d are needed", q.Able, q.N, masters, q.Needed)
}

// Severity returns the largest severity of the findings, and [Notice] if there is none.
func (v Verdict) Severity() (worst Severity) {
	for _, f := range v.Findings {
		worst = max(worst, f.Severity)
	}
	return worst
}

// String returns whether locks can be acquired, in words.
func (v Verdict) String() string {
	switch {
	case !v.CanLock:
		return "no"
	case v.Spare == 0:
		return "yes, but no more masters may fail"
	case v.Spare == 1:
		return "yes, and one more master may fail"
	}
	return fmt.Sprintf("yes, and %d more masters may fail", v.Spare)
}
