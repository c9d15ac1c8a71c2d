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

// Other reports whether a master says that it is another group.
func (f *Fleet) Other() bool {
	for j := range f.Config.Rule.All().All() {
		if fact := &f.Facts[j]; fact.shown() && fact.Record.Group != f.Group {
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
