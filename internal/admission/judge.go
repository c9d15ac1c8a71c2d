package admission

import (
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
)

const (
	// Shortest is the minimum length of a quarantine: twice skew.Window, as the package documentation explains.
	Shortest = 30 * time.Second
	// Look is the interval between two reads of a record that another client may change.
	Look = time.Second
	// Watch is the interval between two reads of the record of a master that votes. Another program may have deleted the
	// record, or have given it a TTL.
	Watch = 30 * time.Second
)

// Reasons why a master does not vote.
var (
	ErrQuarantine  = errors.New("redlock: the master is in quarantine")
	ErrOldMasters  = errors.New("redlock: the masters have changed")
	ErrIncomplete  = errors.New("redlock: the change of the masters is not complete")
	ErrMasterList  = errors.New("redlock: master list mismatch")
	ErrNotDurable  = errors.New("redlock: the master is not durable")
	ErrShardLayout = fmt.Errorf("%w: shard layout mismatch", ErrMasterList)
)

// A Deployment holds all input of the decisions about masters: the settings of one client, and what the client knows
// about each master.
type Deployment struct {
	Config   *quorum.Config
	MaxTTL   time.Duration // the client's max TTL; 0 if the restart guard is off
	Shard    scripts.Shard // the shard of these masters; zero if there are no shards
	Others   []Evidence    // what the records of the other shards show; nil without shards
	Observer bool          // whether the client writes no records, and so neither starts nor ends a quarantine
	Exempt   quorum.Set    // masters to admit without a quarantine: an operator asserts that no client holds a lock
	Facts    []Fact        // indexed by the number of the master in the pool
	Clocks   ballot.Reading
	Addr     func(i int) string // returns the address of master i for error texts
}

// A Move is the next action for one master.
type Move struct {
	Step   scripts.AdmitStep // the step to send; "" for none
	Record scripts.Record    // the record that the step writes
	Wait   time.Duration     // if not 0, call Judge again after this time
	Look   time.Duration     // if not 0, read the record again this long after the last step
	Gather quorum.Set        // other masters whose records must be read again
	Seek   uint64            // if not 0, read again all records, in all shards, that were read before this step
}

// Judge returns the state of master i, and the next action for this master. The caller must set Session, Incarnation
// and Read of the State.
func (d *Deployment) Judge(i int) (State, Move) {
	fact := &d.Facts[i]
	st := State{Err: fact.Err, ClockOff: skew.Excludes(fact.Off), Off: fact.Off, Backlog: fact.Backlog}
	switch {
	case !fact.Up && fact.Known:
		st.Phase = Down
		return st, Move{}
	case !fact.Up:
		return st, Move{}
	case d.MaxTTL == 0: // the record only shows whether other clients have the restart guard on
		st.Phase, st.Err, st.Guarded = Voting, nil, fact.shown() && fact.Record.Admitted
		if !fact.Read {
			return st, Move{Step: scripts.AdmitRead}
		}
		return st, Move{}
	}
	st.Stamp = Unread
	if fact.shown() {
		st.Text, st.Record = fact.Text, fact.Record
		st.Admitted = fact.isOfServer() && st.Record.Admitted
		if st.Agrees = d.agrees(i); st.Agrees {
			st.Stamp = scripts.StampOf(fact.Text)
		}
	}
	if fact.DurableName != "" || fact.breaks() {
		st.Lossy, st.Unverified = fact.Lossy, fact.Unverified
	}
	m := d.judgeUp(i, &st)
	if st.Phase == Connecting && fact.Err != nil { // the steps fail, so rounds must not wait for this master
		st.Phase = Blocked
	}
	return st, m
}

// Unread is the stamp that calls carry while the record of a master is unknown or disagrees. An empty stamp would turn
// the restart guard off.
const Unread = "-"

// judgeUp implements Judge for a master that is up, with the restart guard on.
func (d *Deployment) judgeUp(i int, st *State) Move {
	fact := &d.Facts[i]
	if !fact.Read {
		return Move{Step: scripts.AdmitRead}
	}
	if err := d.obstacle(i); err != nil {
		m := st.block(err)
		if d.adoptable(i) { // without delay, see whether a majority has that epoch
			m.Gather = d.Config.Rule.Old.Where(func(j int) bool { // others with that epoch would gather this one in turn
				return d.Facts[j].Asked < fact.Asked && !d.adoptable(j)
			})
		}
		return m
	}
	switch {
	case fact.isOfServer() && fact.Record.Admitted:
		return d.vote(i, st)
	case fact.isOfServer():
		return d.quarantine(i, st)
	case fact.remembers():
		return d.write(scripts.AdmitNow, i)
	}
	return d.start(i, st)
}

// block sets the phase to Blocked because of err. It returns the action that later reads the record again.
func (st *State) block(err error) Move {
	st.Phase, st.Err = Blocked, err
	return Move{Look: Look}
}

// obstacle returns the problem that must be fixed before master i can vote or start a quarantine, or nil.
func (d *Deployment) obstacle(i int) error {
	fact := &d.Facts[i]
	if fact.Bad != nil {
		return advise(fact.Bad, stepStray, d.Addr(i))
	}
	if d.objects(i) {
		return d.otherMasters(i, i)
	}
	return d.shortBacklog(i)
}

func (d *Deployment) shortBacklog(i int) error {
	return ShortBacklog(d.Facts[i].Backlog, max(d.MaxTTL, d.largest().MaxTTL))
}

// ShortBacklog returns an error if the repl-backlog-ttl of a master is below a max TTL. A backlog of 0 is valid: see
// Fact.Backlog.
func ShortBacklog(backlog, maxTTL time.Duration) error {
	if backlog <= 0 || backlog >= maxTTL {
		return nil
	}
	return advise(fmt.Errorf("its repl-backlog-ttl is %v, below the max TTL of %v, so it could be replaced by a replica "+
		"unnoticed", backlog, maxTTL), stepBacklog, (maxTTL+time.Second-1)/time.Second)
}

// vote sets the phase of master i, whose record admits it, and returns the next action for the master.
func (d *Deployment) vote(i int, st *State) Move {
	fact, c := &d.Facts[i], d.Config
	r := &fact.Record
	st.Phase, st.Err = Voting, nil
	switch {
	//mutant:together = false
	case r.Final < c.LeastFinal(i):
		return st.block(d.incomplete(i, i))
	case r.Identity != fact.Identity: // the server has freed its replication backlog
		return d.write(scripts.AdmitRewrite, i)
	case fact.breaks():
		return st.block(advise(fmt.Errorf("%w: its record calls it durable, but it has %s", ErrNotDurable, fact.Lossy),
			StepDurable, durableSettings(fact.Lossy), d.Addr(i)))
	case fact.durableName() != "" && r.DurableName == "": // it has become durable, or an operator has declared it durable
		return d.write(scripts.AdmitNow, i)
	case fact.Expires: // each write removes the TTL; when the record expired, the master would be in quarantine
		return d.write(scripts.AdmitSettle, i)
	case r.MaxTTL < d.MaxTTL: // an operator may raise the longest TTL: read the record again
		return Move{Look: Look}
	}
	return Move{Look: Watch}
}

// start returns the action for master i, which has no record of its own because it is new or may have lost its data.
func (d *Deployment) start(i int, st *State) Move {
	if d.Observer && !d.Exempt.Has(i) {
		if err := d.wrongClock(i); err != nil {
			return st.block(err)
		}
		st.Phase = InQuarantine
		st.Err = fmt.Errorf("%w, which begins when a client that acquires locks finds it", ErrQuarantine)
		return Move{Look: Look}
	}
	for j := range d.Config.Tracked.All().All() {
		if d.Facts[j].unknown() { // wait: the record of master j may be needed
			return Move{}
		}
	}
	if d.Facts[i].Doubted && !d.Exempt.Has(i) {
		return st.block(fmt.Errorf("%w: the clocks of too few masters can be compared to tell whether its clock is wrong",
			ErrQuarantine))
	}
	if ready, err := d.mayClaim(i); err != nil {
		return st.block(err)
	} else if !ready {
		return Move{Seek: d.Facts[i].Began + 1}
	}
	if err := d.mayWrite(i); err != nil {
		return st.block(err)
	}
	if d.Exempt.Has(i) {
		if own, read := d.Config.Tracked.Of(i), d.read(); !own.Won(read) {
			return st.block(fmt.Errorf("%w: the records of %d masters can be read, %d are needed", ErrQuarantine,
				(read & own.All()).Len(), own.Least()))
		}
	} else if m, ok := d.comparable(i, st); !ok {
		if d.marks(i) { // other clients must not count the master when its clock is right again
			m = d.write(scripts.AdmitStart, i)
		}
		return m
	}
	//mutant:restart-guard = d.write(scripts.AdmitNow, i)
	return d.write(scripts.AdmitStart, i)
}

// marks reports whether the record of master i, whose clock is far off, must be replaced although the clock is wrong:
// the record still admits the master. The quarantine in the new record begins at a time far ahead, so it is begun again
// when the clock is right.
func (d *Deployment) marks(i int) bool {
	fact := &d.Facts[i]
	marked := fact.Record.Since > d.Clocks.Latest+skew.Window.Microseconds()
	return fact.shown() && !marked && fact.leapt() && !fact.Doubted && skew.Excludes(fact.Off)
}

// farAhead is how much later than all clocks a quarantine begins that must be begun again.
const farAhead = 365 * 24 * time.Hour

// comparable reports whether the clock of master i is known to be near the median. The start and the end of a
// quarantine require that. If the clock is not, comparable also returns the action for the master.
func (d *Deployment) comparable(i int, st *State) (m Move, ok bool) {
	own := d.Config.Tracked.Of(i)
	if !own.Won(d.Clocks.Known) {
		for j := range own.All().All() {
			if !d.Facts[j].Known {
				return Move{}, false
			}
		}
		return st.block(fmt.Errorf("%w, which waits until the clocks of %d masters can be compared; %d can", ErrQuarantine,
			own.Least(), (d.Clocks.Known & own.All()).Len())), false
	}
	if err := d.wrongClock(i); err != nil {
		return st.block(err), false
	}
	return Move{}, true
}

// wrongClock returns an error if the clock of master i is too far off the median to start or end a quarantine.
func (d *Deployment) wrongClock(i int) error {
	if !skew.Excludes(d.Facts[i].Off) {
		return nil
	}
	return advise(fmt.Errorf("%w, and %s, more than %v", ErrQuarantine, skew.Text(d.Facts[i].Off), skew.Window),
		setClock)
}

// quarantine returns the action for a master whose quarantine has begun.
func (d *Deployment) quarantine(i int, st *State) Move {
	fact := &d.Facts[i]
	r := &fact.Record
	st.Phase, st.Over = InQuarantine, r.Since+r.Quarantine.Microseconds()
	// A clock may have been set since the quarantine began, and correct clocks differ. The latest clock near the median
	// determined the start, so the earliest one must determine the end.
	//
	//mutant:quarantine-ends-first = d.Clocks.Median
	earliest := d.Clocks.First
	left := ballot.Span(max(0, st.Over-min(fact.Own, earliest)))
	if st.Err == nil {
		why, brief := d.cause(i)
		text := fmt.Sprintf("until %s by its clock, since %s", time.UnixMicro(st.Over).UTC().Format("15:04:05 UTC"), why)
		if left == 0 {
			text = "since " + why + "; its time has passed: a client that acquires locks ends it"
		}
		st.Err = &quarantineError{fmt.Errorf("%w %s", ErrQuarantine, text), brief}
	}
	mayBegin, seek := d.mayBegin(i), uint64(0)
	if !mayBegin && (left == 0 || d.Exempt.Has(i)) {
		seek = fact.Began + 1
		st.Err = fmt.Errorf("%w: it belongs to %s, where no master has voted yet, as far as the records show: voting begins "+
			"when one client sees all masters of all shards, or a shard with a majority that has voted",
			ErrQuarantine, shard(d.Shard))
	}
	if err := d.mayWrite(i); err != nil {
		return st.block(err)
	}
	if d.Exempt.Has(i) && mayBegin {
		if gather, ok := d.seen(i); !ok {
			return Move{Look: Look, Gather: gather}
		}
		return d.admit(scripts.AdmitNow, i)
	}
	if d.Observer {
		if err := d.wrongClock(i); err != nil {
			return st.block(err)
		}
		return Move{Look: Look}
	}
	if m, ok := d.comparable(i, st); !ok {
		return m
	}
	if r.Since > d.Clocks.Latest+skew.Window.Microseconds() { // clocks were ahead when the quarantine began: restart it
		return d.write(scripts.AdmitStart, i)
	}
	//mutant:lost-masters = false
	if r.Quarantine < d.span(i) || fact.Expires {
		return d.write(scripts.AdmitSettle, i)
	}
	gather, ok := d.seen(i)
	switch {
	case !ok || left > 0 || !mayBegin:
		return Move{Look: Look, Gather: gather, Wait: left, Seek: seek}
	case d.agreedTTL(i) == 0:
		return st.block(advise(fmt.Errorf("%w, and no max TTL has a majority: the masters that can be read have "+
			"different ones", ErrQuarantine), StepMaxTTL, d.largest().MaxTTL))
	}
	return d.admit(scripts.AdmitEnd, i)
}

// A quarantineError says that a quarantine has begun.
type quarantineError struct {
	error
	why string // why it has begun, without times, which differ from master to master
}

func (e *quarantineError) Unwrap() error { return e.error }

// WhyQuarantined returns why the quarantine has begun that err is about, or "".
func WhyQuarantined(err error) string {
	if e := (*quarantineError)(nil); errors.As(err, &e) {
		return e.why
	}
	return ""
}

// cause returns why the quarantine of master i has begun, as far as this client can know, with and without times.
func (d *Deployment) cause(i int) (why, brief string) {
	const forgets = ", and may have forgotten locks"
	fact := &d.Facts[i]
	since := fact.Record.Since
	ran := ballot.Span(max(0, since-fact.Started)) // how long the server had run
	switch {
	case promoted(fact.Identity):
		brief = "it was a replica before"
	case fact.replaced() && fact.Leapt == 0:
		brief = "its admission record was deleted or replaced while it ran"
	case fact.Started > 0 && ran < freshStart:
		ago := ballot.Span(max(0, fact.Own-fact.Started)).Round(time.Second)
		return fmt.Sprintf("it started %v ago", ago) + forgets, "it has started" + forgets
	case fact.Leapt != 0:
		brief = "its clock was far off, so locks may have expired early"
	case !d.Voted():
		brief = "it is new"
	default:
		brief = "it is new, or its keys were deleted while it ran"
	}
	return brief, brief
}

// freshStart is how soon after the start of a server a client usually finds it.
const freshStart = time.Minute

// admit returns the action that admits master i. The master then accepts TTLs up to agreedTTL or, if agreedTTL is not
// known, up to the largest max TTL that was read.
func (d *Deployment) admit(step scripts.AdmitStep, i int) Move {
	m := d.write(step, i)
	if agreed := d.agreedTTL(i); agreed > 0 {
		m.Record.MaxTTL = agreed
	}
	return m
}

// agreedTTL returns the max TTL with which master i may be admitted, or 0 if the max TTL is not known yet. Only
// records that were read after the quarantine of master i was first seen are considered.
//
// If any masters are admitted, the result is the largest max TTL in their records. If no master is admitted, clients
// may have started with different max TTLs on different masters. Then the result is the max TTL that a majority of the
// records contain. If no max TTL has a majority and all records were read, the result is the largest max TTL.
func (d *Deployment) agreedTTL(i int) (agreed time.Duration) {
	fresh, _ := d.readSince(i)
	having := map[time.Duration]quorum.Set{}
	var largest time.Duration
	for j := range fresh.All() {
		fact := &d.Facts[j]
		if fact.isOfServer() && fact.Record.Admitted {
			agreed = max(agreed, fact.Record.MaxTTL)
		}
		largest = max(largest, fact.Record.MaxTTL)
		having[fact.Record.MaxTTL] |= quorum.One(j)
	}
	if agreed > 0 {
		return agreed
	}
	for ttl, set := range having {
		if d.Config.Tracked.Of(i).Won(set) {
			return ttl
		}
	}
	if fresh == d.Config.Tracked.All() {
		return largest
	}
	return 0
}

// readSince returns two sets of masters. Those in fresh have shown a record with this configuration since the
// quarantine of master i was first seen. Those in stale were not read since then. A master that was read, but has no
// record, is in neither set: repeated reads would delay the start of its own quarantine.
func (d *Deployment) readSince(i int) (fresh, stale quorum.Set) {
	for j := range d.Config.Tracked.All().All() {
		switch fact := &d.Facts[j]; {
		case j != i && fact.Asked <= d.Facts[i].Began:
			stale |= quorum.One(j)
		case d.confirms(j):
			fresh |= quorum.One(j)
		}
	}
	return fresh, stale
}
