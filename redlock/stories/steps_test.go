package stories

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// The steps of a story; doc.go lists them.

// settles is how long a step lasts in which a program or a message does something.
const settles = 10 * time.Millisecond

// options are the key=value words of a step.
type options map[string]string

func (o options) has(key string) bool { _, ok := o[key]; return ok }

func (o options) text(key, otherwise string) string {
	if o.has(key) {
		return o[key]
	}
	return otherwise
}

func (o options) number(key string, otherwise int) int {
	if n, err := strconv.Atoi(o[key]); err == nil {
		return n
	}
	return otherwise
}

func (o options) duration(key string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(o[key]); err == nil {
		return d
	}
	return otherwise
}

// masters are those of a list such as 1-3,5.
func (o options) masters(key string) map[int]bool {
	set := map[int]bool{}
	for part := range strings.SplitSeq(o[key], ",") {
		for _, n := range span(part) {
			set[n] = true
		}
	}
	return set
}

// span reads 3 or 2-4.
func span(text string) (list []int) {
	first, last, ok := strings.Cut(text, "-")
	from, err := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	if !ok {
		to, err2 = from, nil
	}
	if err != nil || err2 != nil {
		return nil
	}
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}

// A step is one line of a story.
type step struct {
	*world
	td      *datadriven.TestData
	words   []string
	options options
}

// run does one step, and returns what has happened.
func (w *world) run(t *testing.T, td *datadriven.TestData) string {
	s := &step{world: w, td: td, words: []string{td.Cmd}, options: options{}}
	for _, a := range td.CmdArgs {
		if len(a.Vals) > 0 {
			s.options[a.Key] = strings.Join(a.Vals, ",")
		} else if a.Key == "fresh" || a.Key == "cancelled" {
			s.options[a.Key] = ""
		} else if a.Key != "and" {
			s.words = append(s.words, strings.TrimSuffix(a.Key, ","))
		}
	}
	var more string
	switch first := s.words[0]; first {
	case "masters", "master":
		s.master()
	case "program":
		for _, name := range s.words[1:] {
			w.newProgram(name, s.options)
		}
		w.passes(10 * settles)
	case "wait":
		w.passes(s.duration(1))
	case "hold", "deliver", "let", "lose", "cut", "join", "slow":
		s.network()
	case "repeat":
		s.repeat()
	case "freeze":
		w.freeze(s.program(1), s.duration(2), s.options.has("virtual"))
	case "set":
		s.setClock()
	case "crowd":
		s.crowd()
		s.passes(settles)
	case "who":
		more = s.whoHolds(s.words[2])
	case "show":
		more = s.show()
	default:
		s.programs()
	}
	synctest.Wait()
	return w.tell() + more
}

func (s *step) fail() { s.td.Fatalf(s.t, "this is no step") }

// duration is a word of the step.
func (s *step) duration(n int) time.Duration { return s.span(s.words[min(n, len(s.words)-1)]) }

func (s *step) span(word string) time.Duration {
	d, err := time.ParseDuration(word)
	if err != nil {
		s.fail()
	}
	return d
}

// program is the one that a word names.
func (s *step) program(n int) *program {
	if n < len(s.words) {
		for _, p := range s.world.programs {
			if p.name == s.words[n] {
				return p
			}
		}
	}
	s.fail()
	return nil
}

// master does something to some masters: masters 5; master 3 restarts empty.
func (s *step) master() {
	if s.masters == nil {
		n, _ := strconv.Atoi(s.words[1])
		s.newMasters(n, s.options)
		return
	}
	at := 1
	var list []*redlocktest.Master
	for ; at < len(s.words); at++ {
		numbers := span(s.words[at])
		if numbers == nil {
			break
		}
		for _, n := range numbers {
			list = append(list, s.masters.Master(n-1))
		}
	}
	for _, m := range list {
		s.masterDoes(m, plain(s.words[at]), strings.Join(s.words[at+1:], " "))
	}
}

// plain is a verb without its ending.
func plain(verb string) string {
	if v := map[string]string{"has": "have", "tries": "try", "dies": "die", "is": "are", "closes": "close"}[verb]; v != "" {
		return v
	}
	return strings.TrimSuffix(verb, "s")
}

// refusals are what a master may answer to each script, by its first word.
var refusals = map[string]string{
	"OOM":     "OOM command not allowed when used memory > 'maxmemory'.",
	"MISCONF": "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	"LOADING": "LOADING Redis is loading the dataset in memory",
	"NOPERM":  "NOPERM this user has no permissions to run the 'evalsha' command",
	"well":    "",
}

func (s *step) masterDoes(m *redlocktest.Master, verb, rest string) {
	words := strings.Fields(rest)
	switch verb + " " + rest {
	case "stop ":
		m.Stop()
	case "hang ":
		m.Hang()
	case "resume ":
		m.Resume()
	case "restart empty":
		m.Restart(false)
	case "restart with its data", "restart with their data":
		m.Restart(true)
	case "lose all keys":
		m.Flush()
	case "become a replica":
		m.SetRole("slave")
	case "become a master":
		m.SetRole("master")
	case "have a foreign key":
		m.Set(prefix.Lock("orders"), "not a lock")
	case "lose " + rest:
		m.Evict(rest)
	case "answer " + rest:
		m.Refuse(refusals[rest])
	case "have the fence " + words[len(words)-1]:
		m.Set(prefix.Fence("orders"), words[2])
	case "are right":
		s.isAhead(m, 0)
	case "are " + words[0] + " ahead":
		s.isAhead(m, s.span(words[0]))
	case "are " + words[0] + " behind":
		s.isAhead(m, -s.span(words[0]))
	default:
		s.fail()
	}
}

// isAhead sets a master's clock.
func (s *step) isAhead(m *redlocktest.Master, d time.Duration) {
	s.offsets[m] = d
	m.SetClock(s.ahead+d, 1)
}

// network does something to the links of a program: hold messages from A to 3; hold answers from 3 to A.
func (s *step) network() {
	verb, what := s.words[0], s.words[1]
	var p *program
	var links []*link
	for n := range s.words {
		for _, one := range s.world.programs {
			if one.name == s.words[n] {
				p = one
			}
		}
	}
	if p == nil {
		s.fail()
	}
	for _, word := range s.words {
		for _, n := range span(word) {
			links = append(links, p.list[n-1])
		}
	}
	if links == nil {
		links = p.list
	}
	up, down := what == "messages" || what == "everything", what == "answers" || what == "everything"
	s.mu.Lock()
	for _, l := range links {
		s.link(l, verb, what, up, down)
	}
	s.mu.Unlock()
	if verb == "deliver" {
		s.passes(settles)
	}
}

func (s *step) link(l *link, verb, what string, up, down bool) {
	switch {
	case verb == "hold":
		l.holdUp, l.holdDown = l.holdUp || up, l.holdDown || down
	case verb == "lose":
		l.deaf = true
	case verb == "slow":
		l.delay = s.options.duration("by", oneWay)
	case verb == "join":
		l.cut, l.deaf = false, false
	case verb == "cut":
		l.cut = true
		for _, c := range l.conns {
			c.resetLocked()
		}
	default: // let, deliver
		l.holdUp, l.holdDown = l.holdUp && !up, l.holdDown && !down
		for _, c := range l.conns {
			if verb == "deliver" {
				c.deliver(up, down)
			}
			c.leaveLocked()
		}
	}
}

// repeat has the last message of a kind arrive once more, on a connection of its own: repeat acquire from A to 3.
func (s *step) repeat() {
	kind, p := s.words[1], s.program(3)
	for _, n := range span(s.words[5]) {
		l := p.list[n-1]
		s.mu.Lock()
		var last *message
		for _, m := range l.sent {
			if script := scriptOf(m.args); script != nil && script.Name == kind {
				last = m
			}
		}
		s.mu.Unlock()
		if last == nil {
			s.fail()
		}
		reply := s.ask(n, last.args)
		s.mu.Lock()
		s.logMessage(l, last, reply)
		s.mu.Unlock()
	}
	s.passes(settles)
}

// ask sends one command to a master on a connection of its own, and returns the answer.
func (s *step) ask(master int, args []string) any {
	nc, err := s.masters.Dial(context.Background(), "tcp", s.masters.Master(master-1).Addr())
	if err != nil {
		s.td.Fatalf(s.t, "%v", err)
	}
	defer nc.Close()
	text := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	_, _ = nc.Write([]byte(text)) // else nothing can be read
	var buf []byte
	for chunk := make([]byte, 4096); ; {
		n, err := nc.Read(chunk)
		buf = append(buf, chunk[:n]...)
		if reply, used := parse(buf); used > 0 {
			return reply
		} else if err != nil {
			s.td.Fatalf(s.t, "%v", err)
		}
	}
}

// eval runs a script as ask does.
func (s *step) eval(master int, c *scripts.Call) any {
	args := []string{"EVAL", c.Script.Text}
	for _, a := range c.Args[1:] {
		args = append(args, fmt.Sprint(a))
	}
	return s.ask(master, args)
}

// crowd has programs ask each master for orders, and die: crowd 20.
func (s *step) crowd() {
	keys, encoder := prefix.Keys("orders"), scripts.NewEncoder(prefix, 0)
	count, _ := strconv.Atoi(s.words[1])
	for n := range s.masters.N() {
		at := s.masters.Master(n).Time().UnixMicro()
		for i := range count {
			owner := fmt.Sprint("gone-", i)
			t := scripts.NewTicket(owner, 1, "gone", at+int64(i), 0)
			s.eval(n+1, encoder.Acquire(&keys, owner+":1:gone", redlock.DefaultTTL, at, at, t))
		}
	}
}

// setClock is: set wall clock of A back 1h; set wall clock of A forward 4s.
func (s *step) setClock() {
	p, d := s.program(4), s.duration(6)
	if s.words[5] == "back" {
		d = -d
	}
	s.clocks.Lock()
	p.wall += d
	s.clocks.Unlock()
}

// programs has some programs do something at one instant: A locks orders; A and B lock orders.
func (s *step) programs() {
	at := 0
	var list []*program
	for ; at < len(s.words); at++ {
		i := slices.IndexFunc(s.world.programs, func(p *program) bool { return p.name == s.words[at] })
		if i < 0 {
			break
		}
		list = append(list, s.world.programs[i])
	}
	if len(list) == 0 || at == len(s.words) {
		s.fail()
	}
	verb, name := plain(s.words[at]), ""
	if at+1 < len(s.words) {
		name = s.words[len(s.words)-1]
		if name == "again" {
			name = s.words[at+1]
		}
	}
	for _, p := range list {
		s.does(p, verb, name, s.words[len(s.words)-1] == "again")
	}
	s.passes(settles)
}

// does is one call of a program.
func (s *step) does(p *program, verb, name string, again bool) {
	o := s.options
	opts := p.lockOptions(o)
	s.mu.Lock()
	var k *tenure
	if list := p.locks[name]; len(list) > 0 {
		k = list[len(list)-1]
	}
	s.mu.Unlock()
	none := func(f func(ctx context.Context) error) func(context.Context) (*redlock.Lock, error) {
		return func(ctx context.Context) (*redlock.Lock, error) { return nil, f(ctx) }
	}
	switch verb {
	case "lock", "try":
		f := p.Lock
		if verb == "try" {
			f = p.TryLock
		}
		p.call("lock "+name, "", name, func(ctx context.Context) (*redlock.Lock, error) {
			if again {
				ctx = k.ctx
			}
			return f(ctx, name, opts...)
		}, o)
	case "import":
		p.call("import "+name, "", name, func(ctx context.Context) (*redlock.Lock, error) {
			return p.Import(ctx, s.handle, opts...)
		}, o)
	case "unlock":
		s.mu.Lock()
		p.locks[name] = p.locks[name][:len(p.locks[name])-1]
		s.mu.Unlock()
		p.call("unlock "+name, "has unlocked "+name, name, none(k.Unlock), o)
	case "give": // up
		for _, cancel := range p.cancels[name] {
			cancel()
		}
	case "extend":
		p.call("extend "+name, "has extended "+name, name, none(k.Extend), o)
	case "export":
		s.handle, _ = k.Export()
	case "close":
		p.call("close", "is closed", "", none(p.Close), o)
	case "admit":
		p.call("admit all masters", "has admitted all masters", "", none(p.AdmitNow), o)
	case "raise":
		g := o.duration("guard", 0)
		p.call("raise the guard time", fmt.Sprint("has raised the guard time to ", g), "",
			none(func(ctx context.Context) error { return p.RaiseGuardTime(ctx, g) }), o)
	case "die":
		s.die(p)
	default:
		s.fail()
	}
}

// die ends a program as SIGKILL does: its connections end, and it does nothing more that anybody would notice.
func (s *step) die(p *program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.dead = true
	for _, l := range p.list {
		l.cut = true
		for _, c := range l.conns {
			c.resetLocked()
		}
	}
}

// whoHolds says who holds a name, by the word of the masters and by that of each program.
func (s *step) whoHolds(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %s\n", seconds(s.now()))
	b.WriteString(s.together(func(n int, m *redlocktest.Master) string {
		id, depth, left := m.Holds(name)
		text := "nobody"
		if id != "" {
			text = s.names.of(id) + " until " + seconds(s.now()+left)
		}
		if depth > 1 {
			text += fmt.Sprint(", depth ", depth)
		}
		return text
	}))
	for _, p := range s.world.programs {
		if !p.dead {
			fmt.Fprintf(&b, "  %s %s\n", p.name, wrap(s.word(p, name)))
		}
	}
	return b.String()
}

// together tells something of each master, those of which the same is told together.
func (s *step) together(f func(n int, m *redlocktest.Master) string) string {
	lines, order := map[string][]int{}, []string(nil)
	for i := range s.masters.N() {
		text := f(i+1, s.masters.Master(i))
		if lines[text] == nil {
			order = append(order, text)
		}
		lines[text] = append(lines[text], i+1)
	}
	var b strings.Builder
	for _, text := range order {
		b.WriteString("  " + wrap(mastersText(lines[text])+": "+text) + "\n")
	}
	return b.String()
}

// word is what a program says of a name.
func (s *step) word(p *program, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := p.locks[name]
	switch {
	case len(list) > 0 && list[len(list)-1].Err() == nil:
		k := list[len(list)-1]
		on, n := k.HeldOn()
		return fmt.Sprintf("holds it until %s, on %d of %d, token %s",
			seconds(s.now()+k.Remaining()), on, n, s.ballot(k.Token()))
	case p.waiting[name] > 0:
		return "waits for it"
	case len(list) > 0:
		return "knows that its lock has ended: " + s.clean(list[len(list)-1].Err())
	}
	return "does not hold it"
}

// show shows all that the masters have, the queues, or how a program sees the masters: show masters; show queues; show A.
func (s *step) show() string {
	switch s.words[1] {
	case "masters":
		return s.together(func(_ int, m *redlocktest.Master) string {
			var list []string
			for _, key := range m.Keys() {
				list = append(list, s.keyWords(m, key))
			}
			return strings.Join(list, "; ")
		})
	case "queues":
		return s.together(func(n int, _ *redlocktest.Master) string {
			keys := prefix.Keys("orders")
			h, err := scripts.DecodeHolding(s.eval(n, scripts.NewEncoder(prefix, 0).Inspect(&keys)))
			if err != nil {
				return err.Error()
			}
			var list []string
			for _, id := range h.First {
				list = append(list, s.names.of(id))
			}
			if h.Waiters == 0 {
				return "nobody waits"
			}
			return fmt.Sprint(h.Waiters, " waiting: ", strings.Join(slices.Compact(list), ", "))
		})
	}
	p := s.program(1)
	return s.together(func(n int, _ *redlocktest.Master) string {
		m := p.Masters()[n-1]
		text := m.State
		switch {
		case m.Left > 0:
			text += " for another " + seconds(m.Left)
		case m.Err != nil:
			text += ": " + s.clean(m.Err)
		}
		return text
	})
}

// keyWords tells of one key of a master.
func (s *step) keyWords(m *redlocktest.Master, key string) string {
	text, isText := m.Get(key)
	switch {
	case key == prefix.Admission():
		return s.recordWords(text)
	case strings.HasSuffix(key, ":fence"):
		return "fence of " + strings.TrimSuffix(lockName(key), "}:fence") + " " + s.ballot(number(text))
	case strings.HasSuffix(key, ":lock") && isText:
		return "foreign data at " + key
	case strings.HasSuffix(key, ":lock"):
		id, _, _ := m.Holds(lockName(key))
		return lockName(key) + " of " + s.names.of(id)
	}
	return strings.TrimPrefix(key, string(prefix)+":")
}
