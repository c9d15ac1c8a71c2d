package admission

import (
	"fmt"

	"github.com/redlock-go/redlock/internal/scripts"
)

func group(g scripts.Group) string {
	if g == (scripts.Group{}) {
		return "no groups"
	}
	return fmt.Sprintf("group %d of %d", g.Number, g.Of)
}

// mayBegin reports whether masters of this group may vote: some master was admitted before with this number of groups,
// or the records of all masters of all groups contain their groups. Without groups it returns true.
//
//mutant:shards-seen = true
func (f *Deployment) mayBegin() bool { return f.Group == (scripts.Group{}) || f.Agreed || f.Begun() }

// Begun reports whether some master has been admitted as one of this group.
func (f *Deployment) Begun() bool {
	for j := range f.Config.Follow.All().All() {
		if fact := &f.Facts[j]; fact.told() && fact.Record.Admitted && fact.Record.Group == f.Group {
			return true
		}
	}
	return false
}

// Other reports whether the record of some master contains another group.
func (f *Deployment) Other() bool {
	for j := range f.Config.Rule.All().All() {
		if fact := &f.Facts[j]; fact.shown() && fact.Record.Group != f.Group {
			return true
		}
	}
	return false
}

// Named reports whether the records of all masters contain this group.
func (f *Deployment) Named() bool {
	for j := range f.Config.Rule.All().All() {
		//mutant:shards-all-masters = j < 2 && (!fact.shown() || fact.Record.Group != f.Group)
		if fact := &f.Facts[j]; !fact.shown() || fact.Record.Group != f.Group {
			return false
		}
	}
	return true
}
