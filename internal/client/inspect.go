package client

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Inspect implements Inspect of package redlock. If the name is a semaphore, it then inspects the slots.
func (c *Client) Inspect(ctx context.Context, name string) (redlockinfo.Inspection, error) {
	if err := c.CheckName(name); err != nil {
		return redlockinfo.Inspection{}, err
	}
	i, size, err := c.inspectOne(ctx, name)
	if size == 0 || err != nil {
		return i, err
	}
	slots := slotsOf(name, size)
	i.Slots = make([]redlockinfo.Inspection, size)
	for _, failed := range Concurrently(size, func(n int) (err error) {
		i.Slots[n], _, err = c.inspectOne(ctx, slots[n])
		return err
	}) {
		err = cmp.Or(err, failed)
	}
	for _, slot := range i.Slots {
		i.Free = i.Free && slot.Free
		if slot.WaiterCount > i.WaiterCount { // each waiter is in the queues of all slots
			i.Waiters, i.WaiterCount = slot.Waiters, slot.WaiterCount
		}
	}
	return i, err
}

// inspectOne inspects a name, or a slot. If the name is a semaphore, it returns the size.
func (c *Client) inspectOne(ctx context.Context, name string) (i redlockinfo.Inspection, size int, err error) {
	err = c.askAll(ctx, redlockinfo.OpInspect, name, func(r *round.Round, hs holdings) error {
		i = hs.inspection(r.View)
		if i.ID == "" && i.ReaderCount == 0 {
			size = hs.semaphore()
		}
		if l := c.queue.Holder(name); l != nil && l.ID == i.ID {
			i.Idle = l.Idle()
		}
		if i.N = r.View.Config.Rule.N(); i.ID != "" {
			i.Left -= c.cfg.Clock.Now().Sub(r.Start) + lease.Drift(i.Left)
		}
		return nil
	})
	return i, size, err
}

// semaphore returns the size of the semaphore that the name is according to most masters that know it as one, or 0.
func (hs holdings) semaphore() (size int) {
	count := make(map[int]int, 1)
	for _, h := range hs {
		if n := scripts.SemaphoreSize(h.Kind); n > 0 {
			if count[n]++; count[n] > count[size] || count[n] == count[size] && n > size {
				size = n
			}
		}
	}
	return size
}

// answers receives the replies to one call. The channel must have room for all of them.
type answers chan answer

type answer struct {
	master int
	value  any
	err    error
}

// Reply implements transport.Receiver.
func (to answers) Reply(i int, value any, err error) { to <- answer{i, value, err} }

// holdings are the answers by the number of the master.
type holdings map[int]*scripts.Holding

// add records an answer and returns it as a vote: every valid answer counts as granted.
func (hs holdings) add(a answer, addr func(int) string) round.Vote {
	if a.err != nil {
		return round.Vote{Err: a.err}
	}
	h, err := scripts.DecodeHolding(a.value)
	if err != nil {
		return round.Vote{Err: &transport.Error{Addr: addr(a.master), Op: "inspect", Err: err}}
	}
	if len(h.Some) > 0 {
		if role, _ := scripts.ShareOf(h.Some[0].ID); role == scripts.Writer { // then there are no readers
			h.ID, h.Depth, h.Left = h.Some[0].ID, 1, h.Some[0].Left
		}
	}
	hs[a.master] = &h
	return round.Vote{Vote: scripts.Vote{Outcome: quorum.Granted}}
}

// common returns the lease id that most masters report, and these masters. In a joint configuration an id with a
// majority of one set takes precedence, because a client that does not know of the change needs a majority of the old
// set only.
func (hs holdings) common(rule quorum.Rule) (id string, on quorum.Set) {
	given := make(map[string]quorum.Set, 2)
	for i, h := range hs {
		given[h.ID] |= quorum.One(i)
	}
	for one, set := range given {
		if one != "" && rule.WonHalf(set) {
			return one, set
		}
		if set.Len() > on.Len() {
			id, on = one, set
		}
	}
	return id, on
}

// voters returns the masters whose answers are votes. The other masters may have forgotten a lease that is still valid.
func (hs holdings) voters(view *admission.View) (set quorum.Set) {
	for i, h := range hs {
		st := &view.Masters[i]
		unguarded := st.Stamp == ""
		record, err := scripts.ParseRecord(h.Record) // a server may have lost its data since the View
		admitted := err == nil && record.Admitted && record.Identity == st.Record.Identity
		if view.Voting.Has(i) && !st.ClockOff && (unguarded || admitted) {
			set |= quorum.One(i)
		}
	}
	return set
}

// partial returns the leases in the answers, that on the most masters first.
func (hs holdings) partial() (list []redlockinfo.Lease) {
	add := func(id string, token int64, left time.Duration) {
		i := slices.IndexFunc(list, func(l redlockinfo.Lease) bool { return l.ID == id })
		if i < 0 {
			_, label := scripts.LeaseLabel(id)
			i, list = len(list), append(list, redlockinfo.Lease{
				Client: redlockinfo.Client{ID: id, Label: label, Since: heldSince(id, token)},
			})
		}
		list[i].On++
		list[i].Left = max(list[i].Left, left)
	}
	for _, h := range hs {
		if h.ID != "" {
			add(h.ID, h.Token, h.Left)
			continue
		}
		for _, share := range h.Some {
			add(share.ID, 0, share.Left)
		}
	}
	slices.SortFunc(list, func(a, b redlockinfo.Lease) int {
		return cmp.Or(cmp.Compare(b.On, a.On), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// inspection combines the answers. Its Left counts from the time of the answers.
func (hs holdings) inspection(view *admission.View) redlockinfo.Inspection {
	rule, voters := view.Config.Rule, hs.voters(view)
	h := redlockinfo.Inspection{
		Answered: len(hs), Waiters: hs.queue(), Quarantined: len(hs) - voters.Len(),
		Free: rule.Won(voters.Where(func(i int) bool { return hs[i].ID == "" && hs[i].Shares == 0 })),
	}
	for _, a := range hs {
		h.WaiterCount = max(h.WaiterCount, a.Waiters)
	}
	h.Readers, h.ReaderCount = hs.readers(rule)
	id, on := hs.common(rule)
	if id == "" || !rule.WonHalf(on) {
		h.Partial = hs.partial()
		h.Partial = slices.DeleteFunc(h.Partial, func(l redlockinfo.Lease) bool {
			return slices.ContainsFunc(h.Readers, func(r redlockinfo.Client) bool { return r.ID == l.ID })
		})
		return h
	}
	h.ID, h.On, h.Left = id, on.Len(), math.MaxInt64
	_, h.Label = scripts.LeaseLabel(id)
	version := int64(-1)
	for i := range on.All() {
		if hs[i].Version > version {
			version, h.Value = hs[i].Version, hs[i].Value
		}
		h.Token = hs[i].Token
		h.Idle = h.Idle || hs[i].Lingers
		h.Kept = h.Kept || hs[i].Depth == 0 // the holder has unlocked; the release may not have reached the other masters
	}
	if h.Kept { // the value ended with the Unlock
		h.Value = ""
	}
	h.Since = heldSince(id, h.Token)
	for _, set := range rule.Sets() { // Left is the time for which a majority of each set keeps the lease
		if !on.MajorityOf(set) {
			continue
		}
		var lefts []time.Duration
		for i := range (on & set).All() {
			lefts = append(lefts, hs[i].Left)
		}
		slices.Sort(lefts)
		h.Left = min(h.Left, lefts[len(lefts)-quorum.Quorum(set.Len())])
	}
	return h
}

// heldSince returns when a lock was acquired. The token contains the time; if the token is 0, as for readers and
// writers, the id does. heldSince returns the zero time if neither contains a time.
func heldSince(id string, token int64) time.Time {
	if token == 0 {
		_, token = scripts.ShareOf(id)
	}
	if token == 0 {
		return time.Time{}
	}
	return time.UnixMicro(token)
}

// readers returns the readers that a quorum of masters reports, and the number of all readers: the largest that a
// quorum confirms.
func (hs holdings) readers(rule quorum.Rule) (list []redlockinfo.Client, count int) {
	on := make(map[string]quorum.Set)
	var counts []int
	for i, a := range hs {
		if a.ID != "" {
			continue
		}
		counts = append(counts, a.Shares)
		for _, s := range a.Some {
			on[s.ID] |= quorum.One(i)
		}
	}
	for id, set := range on {
		if rule.WonHalf(set) {
			_, label := scripts.LeaseLabel(id)
			list = append(list, redlockinfo.Client{ID: id, Label: label, Since: heldSince(id, 0), On: set.Len()})
		}
	}
	slices.SortFunc(list, func(a, b redlockinfo.Client) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	if need := rule.Least(); len(counts) >= need {
		slices.Sort(counts)
		count = counts[len(counts)-need]
	}
	return list, max(count, len(list))
}

// MastersTime estimates the masters' time in microseconds, as for a ballot. If no clock is known, it is the time of
// this machine.
func (c *Client) MastersTime() int64 { return c.ballots.Ballot(c.cfg.Clock.Now()) }

// askAll inspects name on all masters, waits for those that can be reached, and calls f with their answers. It fails if
// fewer than a quorum answered. name may be that of a slot.
func (c *Client) askAll(
	ctx context.Context, op redlockinfo.Op, name string, f func(r *round.Round, hs holdings) error,
) error {
	if !c.enter() {
		return lease.ErrClosed
	}
	defer c.leave()
	view, _ := c.monitor.Await(ctx, (*admission.View).AllKnown) // ignore the error: the votes show that ctx ended early
	keys := scripts.Prefix(c.cfg.Prefix).Keys(name)
	r := c.sender.New(view, op, keys.Lock(), nil)
	hs := make(holdings)
	call := view.Encoder.Inspect(&keys, c.MastersTime())
	cause := c.toAll(ctx, view, call, func(a answer) { r.Record(a.master, hs.add(a, c.pool.Addr)) })
	if count := r.Tally(); !count.Rule.Won(count.Of(quorum.Granted)) {
		return failed(op, name, r.Failure(round.ErrNoQuorum, cause))
	}
	return f(r, hs)
}

// toAll sends a call to all masters and calls f with each answer. If ctx ends or Close is called first, it returns the
// reason.
func (c *Client) toAll(ctx context.Context, view *admission.View, call *frame.Call, f func(answer)) (cause error) {
	came := make(answers, view.Config.Rule.N())
	for i := range view.Config.Rule.All().All() {
		// A server that has taken the place of the one in the View may have other data.
		if err := c.pool.Send(i, call, transport.Condition{Session: view.Masters[i].Session}, came); err != nil {
			came <- answer{i, nil, err}
		}
	}
	for range view.Config.Rule.N() {
		select {
		case a := <-came:
			f(a)
		case <-ctx.Done():
			return fault.ContextError(ctx)
		case <-c.closing:
			return lease.ErrClosed
		}
	}
	return nil
}

// queue merges the queues of the masters, ordered by the average position of each waiter.
func (hs holdings) queue() (list []redlockinfo.Client) {
	type waiter struct {
		redlockinfo.Client
		waited time.Duration // according to the masters' clocks
		places int
	}
	seen := make(map[string]*waiter)
	for _, h := range hs {
		for place, id := range h.First {
			w := seen[id]
			if w == nil {
				w = &waiter{}
				_, w.Label = scripts.LeaseLabel(id)
				seen[id] = w
			}
			w.On++
			w.places += place
			digits, _, _ := strings.Cut(id, ":")
			if began, err := strconv.ParseInt(digits, 10, 64); err == nil {
				w.waited = max(w.waited, time.Duration(h.Time-began)*time.Microsecond)
			}
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		x, y := seen[a], seen[b]
		return cmp.Or(cmp.Compare(x.places*y.On, y.places*x.On), cmp.Compare(a, b))
	}) {
		w := seen[id]
		if w.waited > 0 {
			w.Since = time.Now().Add(-w.waited)
		}
		list = append(list, w.Client)
	}
	return list
}
