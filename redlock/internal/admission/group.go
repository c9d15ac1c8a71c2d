package admission

import (
	"fmt"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// otherGroup is the error if a record says that these masters are another group than this program goes by. The epoch
// plays no part in it.
func (f *Fleet) otherGroup(i int) error {
	all := f.Config.Rule.All()
	if !all.Has(i) { // it is being prepared: it is no reason to stop the others
		all = quorum.One(i)
	}
	for j := range all.All() {
		fact := &f.Facts[j]
		if !fact.told() || fact.Record.Group == f.Group {
			continue
		}
		return fmt.Errorf("%w: the record on %s says %s, this program has %s; if no program needs that record, %s",
			ErrGroup, f.Addr(j), group(fact.Record.Group), group(f.Group), f.replace(j))
	}
	return nil
}

func group(g scripts.Group) string {
	if g == (scripts.Group{}) {
		return "no groups"
	}
	return fmt.Sprintf("group %d of %d", g.Number, g.Of)
}

// mayBegin reports whether masters of this group may vote: some master was admitted under this number of groups before,
// or all masters of all groups name their groups. Without groups they may.
func (f *Fleet) mayBegin() bool { return f.Group == (scripts.Group{}) || f.Agreed || f.Begun() }

// Begun reports whether a master of the group was seen that has been admitted as one of it.
func (f *Fleet) Begun() bool {
	for j := range f.Config.Follow.All().All() {
		if fact := &f.Facts[j]; fact.told() && fact.Record.Admitted && fact.Record.Group == f.Group {
			return true
		}
	}
	return false
}

// Named reports whether all masters have records that name the group.
func (f *Fleet) Named() bool {
	for j := range f.Config.Rule.All().All() {
		if fact := &f.Facts[j]; !fact.shown() || fact.Record.Group != f.Group {
			return false
		}
	}
	return true
}
