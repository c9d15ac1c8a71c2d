package admission

import (
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/internal/scripts"
)

func shard(g scripts.Shard) string {
	if g == (scripts.Shard{}) {
		return "no shards"
	}
	return fmt.Sprintf("shard %d of %d", g.Number, g.Of)
}

// mayBegin reports whether masters of this shard may be admitted. Without shards it returns true. With shards, a master
// of any shard must have been admitted before, or the records of all masters of all shards must contain their shards.
//
//mutant:shards-seen = true
func (f *Deployment) mayBegin() bool { return f.Shard == (scripts.Shard{}) || f.Agreed || f.Begun() }

// Agreed returns the values of Deployment.Agreed and Deployment.Stranger. The result agreed is true if a master of any
// shard was admitted before, or the records of all masters of all shards contain their shards. Otherwise, stranger is
// true if the record of any master contains another shard.
func Agreed(shards []*View) (agreed, stranger bool) {
	named := len(shards) > 0
	for _, v := range shards {
		if v.Begun {
			return true, false
		}
		named = named && v.Named
		stranger = stranger || v.Other
	}
	return named, stranger && !named
}

// Voted reports whether the latest record of any master, of whatever configuration, admits it to vote, or whether the
// restart guard is off.
func (f *Deployment) Voted() bool {
	return f.Guard == 0 || slices.ContainsFunc(f.Facts, func(fact Fact) bool {
		return fact.hasRecord() && fact.Record.Admitted
	})
}

// Begun reports whether the record of any master admits that master to this shard.
func (f *Deployment) Begun() bool {
	return f.Config.Follow.All().Where(func(j int) bool {
		fact := &f.Facts[j]
		return fact.hasRecord() && fact.Record.Admitted && fact.Record.Shard == f.Shard
	}) != 0
}

// Other reports whether the record of any master contains another shard.
func (f *Deployment) Other() bool {
	return f.Config.Rule.All().Where(func(j int) bool {
		return f.Facts[j].shown() && f.Facts[j].Record.Shard != f.Shard
	}) != 0
}

// Named reports whether the records of all masters contain this shard.
func (f *Deployment) Named() bool {
	all := f.Config.Rule.All()
	return all.Where(func(j int) bool {
		//mutant:shards-all-masters = j >= 2 || f.Facts[j].shown() && f.Facts[j].Record.Shard == f.Shard
		return f.Facts[j].shown() && f.Facts[j].Record.Shard == f.Shard
	}) == all
}
