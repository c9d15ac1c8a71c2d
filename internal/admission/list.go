package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
)

// agrees reports whether the record of master j contains the shard of this client, and the masters of the client's
// configuration or of the previous configuration. Only a master whose record agrees votes.
func (d *Deployment) agrees(j int) bool {
	c, r := d.Config, &d.Facts[j].Record
	switch {
	case !d.Facts[j].hasRecord() || r.Shard != d.Shard || r.Epoch > c.Epoch:
		//mutant:epoch = r.Epoch > c.Epoch
		return false
	case r.Epoch == c.Epoch:
		prepared := !c.Rule.All().Has(j) && r.Masters == c.Upcoming && r.Next == ""
		//mutant:master-list = true
		return prepared || r.Masters == c.Masters && r.Next == c.Next
	case !c.Rule.Old.Has(j): // a master that is only in the next set votes only together with the old set
		return true
	case r.Epoch%2 == 1: // its next masters follow; or its present ones, if it was cancelled, and then Final is too small
		return r.Next == c.Masters || r.Masters == c.Masters && r.Final < r.Epoch
	}
	//mutant:together = true
	return r.Masters == c.Masters
}

// confirms reports whether the record of master j was read on the present connection and agrees.
func (d *Deployment) confirms(j int) bool { return d.Facts[j].shown() && d.agrees(j) }

// objects reports whether the record of master j was read on the present connection and does not agree.
func (d *Deployment) objects(j int) bool {
	return d.Facts[j].shown() && !d.agrees(j)
}

// established reports whether the latest known records show a majority admitted with this client's configuration.
func (d *Deployment) established() bool {
	rule := d.Config.Rule
	return rule.Won(rule.All().Where(func(j int) bool { return d.Facts[j].Record.Admitted && d.agrees(j) }))
}

// read returns the masters that were read on the present connection, including masters that have no record.
func (d *Deployment) read() quorum.Set {
	return d.Config.Tracked.All().Where(func(j int) bool { return d.Facts[j].Read })
}

// mayWrite returns an error if this client must not write its configuration into the record of master i. The caller
// must have checked that this record does not contain another configuration.
func (d *Deployment) mayWrite(i int) error {
	all := d.Config.Rule.All()
	if !all.Has(i) || d.established() && !d.Exempt.Has(i) {
		return nil
	}
	for j := range all.All() {
		//mutant:first-records = false
		if d.objects(j) && !d.cancels(j) { // in a change that is being cancelled, seen does not let the quarantine end
			return d.otherMasters(i, j)
		}
	}
	return nil
}

// mayReplace returns an error if an operator must not replace the record of master i. It is safe to replace the record
// if a majority of the records contain this client's configuration, or if a majority was read and no record of another
// master contains a different configuration.
func (d *Deployment) mayReplace(i int) error {
	rule, read := d.Config.Tracked.Of(i), d.read()
	sure, others := d.strayness(i)
	switch {
	case sure:
		return nil
	case !rule.Won(read):
		return fmt.Errorf("the records of %d masters can be read, %d are needed", (read & rule.All()).Len(), rule.Least())
	}
	for j := range others.All() {
		return d.otherMasters(i, j)
	}
	return nil
}

// seen reports whether every relevant record has been read, so that the quarantine of master i may end. If not, gather
// contains the masters whose records must be read again.
//
// A majority must have shown this configuration since the quarantine was first seen. Until a majority has been admitted
// with this configuration, every master must have shown the configuration. Otherwise a client with another list could
// admit the other masters at the same time. Exceptions are masters on which no client can write a record, and masters
// that have been down for the length of a quarantine or since this client started.
func (d *Deployment) seen(i int) (gather quorum.Set, ok bool) {
	fresh, stale := d.readSince(i)
	own, all := d.Config.Tracked.Of(i), d.Config.Rule.All()
	//mutant:fresh-records = false
	if !own.Won(fresh) {
		return stale & own.All(), false
	}
	if !all.Has(i) || d.established() {
		return 0, true
	}
	for j := range all.All() {
		fact := &d.Facts[j]
		// No client can write a record on a master that is stuck.
		stuck := fact.Err != nil || fact.Bad != nil || skew.Excludes(fact.Off) || d.shortBacklog(j) != nil
		// A master that was down for less than a quarantine may still vote for clients with another list. There is no wait
		// in two cases. If an operator admits master i, the operator knows which masters are down. If this client has never
		// read the record of master j, a wait could take longer than the client runs.
		gone := d.Exempt.Has(i) || fact.Asked == 0 || fact.Lost >= d.largest().Quarantine
		//mutant:first-records 1= false
		if !fresh.Has(j) && (!fact.Known || fact.Up && !stuck || !fact.Up && !gone) {
			return stale & all, false
		}
	}
	return 0, true
}

// Adopts returns the epoch of a later final configuration that has the same masters as this client, if a majority of
// these masters has that epoch in their records. Otherwise it returns 0. A client whose masters are plain URLs follows
// the changes of other clients in this way, and a client in a joint configuration learns that the change was cancelled.
func (d *Deployment) Adopts() int64 {
	c := d.Config
	names := map[int64]quorum.Set{}
	for j := range c.Rule.Old.All() {
		fact := &d.Facts[j]
		r := &fact.Record
		if !d.adoptable(j) || r.Final < r.Epoch {
			continue
		}
		if names[r.Epoch] |= quorum.One(j); names[r.Epoch].MajorityOf(c.Rule.Old) {
			return r.Epoch
		}
	}
	return 0
}

// adoptable reports whether the record of master j has the masters of this client alone, at a later epoch.
func (d *Deployment) adoptable(j int) bool {
	c, r := d.Config, &d.Facts[j].Record
	same := r.Masters == c.Masters && r.Next == "" && r.Shard == d.Shard
	return d.Facts[j].shown() && r.Epoch > c.Epoch && r.Epoch%2 == 0 && same
}

// cancels reports whether the record of master j cancels the change of this client.
func (d *Deployment) cancels(j int) bool {
	return d.adoptable(j) && d.Facts[j].Record.Epoch == d.Config.Epoch+1
}

// otherMasters returns the error for master i if the record of master j contains another configuration. The text does
// not name master i, so that masters with the same error are listed together.
func (d *Deployment) otherMasters(i, j int) error {
	c, r, record := d.Config, &d.Facts[j].Record, "the record of this master"
	if i != j {
		record = "the record on " + d.Addr(j)
	}
	here := fmt.Sprintf("epoch %d and the masters %s", c.Epoch, lists(c.Masters, c.Next))
	there := fmt.Sprintf("epoch %d and the masters %s", r.Epoch, lists(r.Masters, r.Next))
	// The difference comes first, since the log shortens long texts.
	differs := difference(c.Masters+","+c.Next, r.Masters+","+r.Next)
	sure, others := d.strayness(j)
	stray := ""
	if others == 0 && c.Tracked.Of(j).Won(d.read()) {
		stray = fmt.Sprintf(", unless that record is a stray one (redlock quarantine --master %s)", d.Addr(j))
	}
	switch {
	case r.Shard != d.Shard && sure:
		return advise(fmt.Errorf("%w: this client has %s, and %s has %s", ErrShardLayout, shard(d.Shard), record,
			shard(r.Shard)), stepStray, d.Addr(j))
	case r.Shard != d.Shard:
		return advise(fmt.Errorf("%w: the shards of this client are probably wrong: it has %s, and %s has %s%s",
			ErrShardLayout, shard(d.Shard), record, shard(r.Shard), stray), stepShards)
	case d.adoptable(j):
		return &advised{error: fmt.Errorf("%w: %s has the masters of this client at epoch %d, which this client adopts as "+
			"soon as a majority of them has it", ErrOldMasters, record, r.Epoch), soon: true}
	case r.Epoch == c.Epoch-1 && r.Epoch%2 == 1 && r.Masters == c.Masters && r.Shard == d.Shard:
		return d.incomplete(i, j)
	case r.Epoch > c.Epoch:
		return adviseList(fmt.Errorf("%w: the list of this client is out of date: %sit has %s, and %s has %s", ErrOldMasters,
			differs, here, record, there), stepEpoch, r.Epoch, lists(r.Masters, r.Next))
	case sure:
		return advise(fmt.Errorf("%w: %sthis client has %s, and %s has %s", ErrMasterList, differs, here, record, there),
			stepStray, d.Addr(j))
	case r.Epoch == c.Epoch && r.Epoch%2 == 1 && r.Masters == c.Masters:
		return adviseList(fmt.Errorf("%w: another change has this epoch: %sthis client has %s, and %s has %s", ErrMasterList,
			differs, here, record, there), stepEpoch, r.Epoch, lists(r.Masters, r.Next))
	case r.Final < c.LeastFinal(j) && r.Epoch == c.Epoch: // the other list of this epoch is that of the old masters
		return adviseList(fmt.Errorf("%w: it was cancelled: %sthis client has %s, and %s has %s", ErrIncomplete, differs,
			here, record, there), stepEpoch, r.Epoch, lists(r.Masters, r.Next))
	case r.Final < c.LeastFinal(j):
		return d.incomplete(i, j)
	}
	return adviseList(fmt.Errorf("%w: the list of this client is probably wrong: %sit has %s, and %s has %s%s",
		ErrMasterList, differs, here, record, there, stray), stepList)
}

// strayness reports whether the record of master j is certainly a stray one, because the records of a majority contain
// this client's configuration. It also returns the other masters whose records contain another configuration.
func (d *Deployment) strayness(j int) (sure bool, others quorum.Set) {
	all := d.Config.Tracked.All()
	return d.Config.Tracked.Of(j).Won(all.Where(d.confirms)), all.Where(d.objects) &^ quorum.One(j)
}

// incomplete returns the error for master i if the record of master j does not allow the configuration of this client
// yet.
func (d *Deployment) incomplete(i, j int) error {
	record := "the record of this master"
	if i != j {
		record = "the record on " + d.Addr(j)
	}
	if r := &d.Facts[j].Record; r.Epoch == d.Config.Epoch-1 && r.Epoch%2 == 1 && r.Masters == d.Config.Masters {
		return &advised{error: fmt.Errorf("%w: this client has the list that follows when it is cancelled, but %s "+
			"still has epoch %d", ErrIncomplete, record, r.Epoch), step: fmt.Sprintf(stepAbort, r.Epoch), soon: true}
	}
	return advise(fmt.Errorf("%w: by %s, the configuration is final up to epoch %d, but this client needs epoch %d",
		ErrIncomplete, record, d.Facts[j].Record.Final, d.Config.LeastFinal(j)), stepBefore)
}

// difference formats the masters that are only in the list of this client or only in the list of a record, each
// followed by a semicolon. It returns "" if the lists are equal.
func difference(client, record string) (text string) {
	without := func(list, other string) string {
		others := strings.Split(other+",", ",")
		return strings.Join(slices.DeleteFunc(strings.Split(list, ","), func(name string) bool {
			return slices.Contains(others, name)
		}), ",")
	}
	if only := without(client, record); only != "" {
		text = "only this client has " + scripts.ShowList(only) + "; "
	}
	if only := without(record, client); only != "" {
		text += "only the record has " + scripts.ShowList(only) + "; "
	}
	return text
}

// lists formats the masters of a configuration.
func lists(masters, next string) string {
	if next == "" {
		return scripts.ShowList(masters)
	}
	return scripts.ShowList(masters) + " together with " + scripts.ShowList(next)
}
