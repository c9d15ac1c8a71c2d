package admission

import (
	"fmt"
	"math"
	"slices"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

func shard(g scripts.Shard) string {
	switch {
	case g == (scripts.Shard{}):
		return "no shards"
	case g.Retired():
		return "no shard: an operator has changed the number of shards, and does not use this master any more"
	}
	return fmt.Sprintf("shard %d of %d", g.Number, g.Of)
}

// Evidence is what the records of one shard, as they were read last on the present connections, show about the layout:
// the shard and the number of shards of this client. Each number is that of a step. A later step, in any shard of the
// Locker, has a larger number. 0 means that the records do not show it.
type Evidence struct {
	// Proven is the number since which a majority of the masters has shown that masters of this layout have voted. A
	// record shows this if it has the layout of this client, and its state is not unproven.
	Proven uint64
	Named  uint64 // the number since which every master has shown the layout
	Looked uint64 // the number since which every master that can be read was read; the largest number if there is none
	Other  bool   // whether the last record of a master, which it may have lost since, has another layout
}

// Evidence returns the evidence of this shard.
func (f *Deployment) Evidence() Evidence { return f.evidenceWithout(-1) }

// evidenceWithout returns the evidence of this shard. The record of master i counts however early it was read.
func (f *Deployment) evidenceWithout(i int) Evidence {
	e := Evidence{Named: math.MaxUint64, Looked: math.MaxUint64}
	asked := func(j int) uint64 {
		if j == i {
			return math.MaxUint64
		}
		return f.Facts[j].Asked
	}
	for j := range f.Config.Rule.All().All() {
		fact := &f.Facts[j]
		switch {
		case fact.unknown():
			e.Looked = 0
		case fact.Up && fact.Read:
			e.Looked = min(e.Looked, asked(j))
		}
		if !f.names(j) {
			e.Named = 0
		}
		e.Named = min(e.Named, asked(j))
	}
	e.Other = f.hasMissed()
	for _, set := range f.Config.Rule.Sets() {
		var proofs []uint64
		for j := range set.All() {
			if f.names(j) && !f.Facts[j].Record.Unproven {
				proofs = append(proofs, asked(j))
			}
		}
		//mutant:shard-majority = min(1, quorum.Quorum(set.Len()))
		least := quorum.Quorum(set.Len())
		if slices.Sort(proofs); len(proofs) >= least {
			e.Proven = max(e.Proven, proofs[len(proofs)-least])
		}
	}
	return e
}

// names reports whether master j shows a record with this client's layout on the present connection.
func (f *Deployment) names(j int) bool {
	return f.Facts[j].shown() && f.Facts[j].Record.Shard == f.Shard
}

// mayBegin reports whether master i, which is in quarantine, may be admitted. Without shards it may, unless the last
// record of a master had shards, and no majority shows that there are none: then this client has missed a change of the
// layout, and masters may have lost the records that say so. With shards, a majority of the masters of one shard,
// whichever, must have shown that this layout has voted, or all masters of all shards must have shown the layout.
// Records that were read before the quarantine was first seen do not count: an operator may have changed the layout
// since. A later change replaces the record of the quarantine as well.
func (f *Deployment) mayBegin(i int) bool {
	if f.Shard == (scripts.Shard{}) {
		return !f.hasMissed() || f.evidenceWithout(i).Proven > 0
	}
	//mutant:shard-shown-now = uint64(0)
	began := f.Facts[i].Began
	all := append([]Evidence{f.evidenceWithout(i)}, f.Others...)
	after := func(get func(*Evidence) uint64) (n int) {
		for k := range all {
			if get(&all[k]) > began {
				n++
			}
		}
		return n
	}
	return after(func(e *Evidence) uint64 { return e.Proven }) > 0 ||
		len(all) == f.Shard.Of && after(func(e *Evidence) uint64 { return e.Named }) == len(all)
}

// mayClaim returns an error if this client must not write the first record of master i, because the last record of a
// master of any shard has another layout, and no shard has shown that this layout has voted. Such a client could claim
// a shard that has just lost its records. If the records of other shards must be read first, mayClaim returns false.
func (f *Deployment) mayClaim(i int) (ready bool, err error) {
	if f.mayBegin(i) {
		return true, nil
	}
	if f.Shard == (scripts.Shard{}) {
		return true, advise(fmt.Errorf("%w, according to the last record of a master", ErrShardLayout), stepShards)
	}
	ready = true
	for _, e := range append([]Evidence{f.evidenceWithout(i)}, f.Others...) {
		if e.Other {
			return true, advise(fmt.Errorf("%w, according to the last record of another master", ErrShardLayout), stepShards)
		}
		ready = ready && e.Looked > f.Facts[i].Began
	}
	return ready, nil
}

// hasMissed reports whether the last record of a master that this client has read has another layout.
func (f *Deployment) hasMissed() bool {
	for j := range f.Config.Rule.All().All() {
		//mutant:missed-layout = f.Facts[j].shown() && r.Shard != f.Shard
		if r := f.Facts[j].last(); r != nil && r.Shard != f.Shard {
			return true
		}
	}
	return false
}

// Voted reports whether the latest record of any master, of whatever configuration, admits it to vote, or whether the
// restart guard is off.
func (f *Deployment) Voted() bool {
	return f.MaxTTL == 0 || slices.ContainsFunc(f.Facts, func(fact Fact) bool {
		return fact.hasRecord() && fact.Record.Admitted
	})
}
