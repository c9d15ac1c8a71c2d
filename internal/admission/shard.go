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
func (d *Deployment) Evidence() Evidence { return d.evidenceWithout(-1) }

// evidenceWithout returns the evidence of this shard. The record of master i counts however early it was read.
func (d *Deployment) evidenceWithout(i int) Evidence {
	e := Evidence{Named: math.MaxUint64, Looked: math.MaxUint64}
	asked := func(j int) uint64 {
		if j == i {
			return math.MaxUint64
		}
		return d.Facts[j].Asked
	}
	for j := range d.Config.Rule.All().All() {
		fact := &d.Facts[j]
		switch {
		case fact.unknown():
			e.Looked = 0
		case fact.Up && fact.Read:
			e.Looked = min(e.Looked, asked(j))
		}
		if !d.names(j) {
			e.Named = 0
		}
		e.Named = min(e.Named, asked(j))
	}
	e.Other = d.hasMissed()
	for _, set := range d.Config.Rule.Sets() {
		var proofs []uint64
		for j := range set.All() {
			if d.names(j) && !d.Facts[j].Record.Unproven {
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
func (d *Deployment) names(j int) bool {
	return d.Facts[j].shown() && d.Facts[j].Record.Shard == d.Shard
}

// mayBegin reports whether master i, which is in quarantine, may be admitted. Without shards it may, unless the last
// record of a master had shards, and no majority shows that there are none: then this client has missed a change of the
// layout, and masters may have lost the records that say so. With shards, a majority of the masters of one shard,
// whichever, must have shown that this layout has voted, or all masters of all shards must have shown the layout.
// Records that were read before the quarantine was first seen do not count: an operator may have changed the layout
// since. A later change replaces the record of the quarantine as well.
func (d *Deployment) mayBegin(i int) bool {
	if d.Shard == (scripts.Shard{}) {
		return !d.hasMissed() || d.evidenceWithout(i).Proven > 0
	}
	//mutant:shard-shown-now = uint64(0)
	began := d.Facts[i].Began
	all := append([]Evidence{d.evidenceWithout(i)}, d.Others...)
	after := func(get func(*Evidence) uint64) (n int) {
		for k := range all {
			if get(&all[k]) > began {
				n++
			}
		}
		return n
	}
	return after(func(e *Evidence) uint64 { return e.Proven }) > 0 ||
		len(all) == d.Shard.Of && after(func(e *Evidence) uint64 { return e.Named }) == len(all)
}

// mayClaim returns an error if this client must not write the first record of master i, because the last record of a
// master of any shard has another layout, and no shard has shown that this layout has voted. Such a client could claim
// a shard that has just lost its records. If the records of other shards must be read first, mayClaim returns false.
func (d *Deployment) mayClaim(i int) (ready bool, err error) {
	if d.mayBegin(i) {
		return true, nil
	}
	if d.Shard == (scripts.Shard{}) {
		return true, advise(fmt.Errorf("%w, according to the last record of a master", ErrShardLayout), stepShards)
	}
	ready = true
	for _, e := range append([]Evidence{d.evidenceWithout(i)}, d.Others...) {
		if e.Other {
			return true, advise(fmt.Errorf("%w, according to the last record of another master", ErrShardLayout), stepShards)
		}
		ready = ready && e.Looked > d.Facts[i].Began
	}
	return ready, nil
}

// hasMissed reports whether the last record of a master that this client has read has another layout.
func (d *Deployment) hasMissed() bool {
	for j := range d.Config.Rule.All().All() {
		//mutant:missed-layout = d.Facts[j].shown() && r.Shard != d.Shard
		if r := d.Facts[j].last(); r != nil && r.Shard != d.Shard {
			return true
		}
	}
	return false
}

// Voted reports whether the latest record of any master, of whatever configuration, admits it to vote, or whether the
// restart guard is off.
func (d *Deployment) Voted() bool {
	return d.MaxTTL == 0 || slices.ContainsFunc(d.Facts, func(fact Fact) bool {
		return fact.hasRecord() && fact.Record.Admitted
	})
}
