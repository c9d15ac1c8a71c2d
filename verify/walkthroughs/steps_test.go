package walkthroughs

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

	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// The steps of a walkthrough. doc.go lists them.

const (
	oneWay  = time.Millisecond      // the delay of a message in each direction
	settles = 10 * time.Millisecond // duration of a step with an action of a client or a delivery
)

// options holds the key=value words of a step.
type options map[string]string

// known lists all keys of options.
var known = []string{"by", "extension", "fresh", "masters", "ttl", "virtual", "within", "without"}

func (o options) number(key string) int {
	n, _ := strconv.Atoi(o[key])
	return n
}

// duration returns the value of a key, or 0 if the step does not contain the key.
func (o options) duration(key string) time.Duration {
	if o[key] == "" {
		return 0
	}
	return span(o[key])
}

// numbers parses a list such as 1-3,5. It returns nil if the text is not such a list.
func numbers(text string) (list []int) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, isSpan := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to := from
		if isSpan && err == nil {
			to, err = strconv.Atoi(last)
		}
		if err != nil {
			return nil
		}
		for n := from; n <= to; n++ {
			list = append(list, n)
		}
	}
	return list
}

// A step is one line of a walkthrough.
type step struct {
	*scenario
	words []string
	o     options
}

// run executes one step, and returns the events that it causes.
func (w *scenario) run(t *testing.T, td *datadriven.TestData) (text string) {
	defer func() {
		if r := recover(); r != nil { // a word is missing or unknown
			td.Fatalf(t, "invalid step: %v: doc.go lists all steps", r)
		}
	}()
	s := &step{scenario: w, words: []string{td.Cmd}, o: options{}}
	for _, a := range td.CmdArgs {
		switch {
		case a.Key == "fresh":
			s.o[a.Key] = "yes"
		case len(a.Vals) > 0 && slices.Contains(known, a.Key):
			s.o[a.Key] = strings.Join(a.Vals, ",")
		case len(a.Vals) > 0:
			panic(a.Key)
		default:
			s.words = append(s.words, a.Key)
		}
	}
	switch s.words[0] {
	case "masters", "master":
		s.toMasters()
	case "client":
		for _, name := range s.words[1:] {
			w.newClient(name, s.o)
		}
		w.passes(10 * settles)
	case "wait":
		w.passes(span(s.words[1]))
	case "hold", "let", "deliver", "lose", "cut", "join", "slow":
		s.network()
	case "repeat":
		s.repeat()
	case "freeze":
		w.freeze(w.client(s.words[1]), span(s.words[2]), s.o["virtual"] != "")
	case "who":
		text = s.whoHolds(s.words[2])
	case "show":
		text = s.show(s.words[1])
	default:
		s.toClient()
	}
	synctest.Wait()
	return w.report() + text
}

// span parses a duration. Like all functions that parse the words of a step, it panics on errors.
func span(word string) time.Duration {
	d, err := time.ParseDuration(word)
	if err != nil {
		panic(err)
	}
	return d
}

// of returns the meaning of a word, and panics if the map does not contain the word.
func of[V any](meanings map[string]V, word string) V {
	v, known := meanings[word]
	if !known {
		panic(word)
	}
	return v
}

var signs = map[string]time.Duration{"back": -1, "behind": -1, "forward": 1, "ahead": 1}

// client returns the client with this name, or nil if there is none.
func (w *scenario) client(name string) *client {
	i := slices.IndexFunc(w.clients, func(p *client) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return w.clients[i]
}

// link returns the link to the master with this address.
func (p *client) link(addr string) *link {
	return p.links[slices.Index(p.w.masters.URLs(), "redis://"+addr)]
}

// toMasters executes a step such as "masters 5", or an event on some masters such as "masters 1-3 restart empty".
func (s *step) toMasters() {
	list := numbers(s.words[1])
	if s.masters == nil {
		var opts []memory.Option
		if s.o["fresh"] != "" {
			opts = append(opts, memory.Fresh())
		}
		s.masters = memory.New(list[0], opts...)
		return
	}
	for _, n := range list {
		s.toMaster(s.masters.Master(n-1), infinitive(s.words[2]), strings.Join(s.words[3:], " "))
	}
}

// infinitive returns the infinitive of a verb in the third person.
func infinitive(verb string) string {
	switch verb {
	case "has":
		return "have"
	case "is":
		return "are"
	case "tries", "dies", "finishes":
		return map[string]string{"tries": "try", "dies": "die", "finishes": "finish"}[verb]
	}
	return strings.TrimSuffix(verb, "s")
}

func (s *step) toMaster(m *memory.Master, verb, what string) {
	last := s.words[len(s.words)-1]
	switch verb {
	case "stop":
		m.Stop()
	case "restart": // empty
		m.Restart(false)
	case "lose":
		m.Evict(what)
	case "are":
		s.wrong[m] = 0
		if last != "right" {
			s.wrong[m] = of(signs, last) * span(s.words[3])
		}
		m.SetClock(s.ahead+s.wrong[m], 1)
	default:
		panic(verb)
	}
}

// directions maps the words of a step to directions of a link.
var directions = map[string][2]bool{"messages": {up: true}, "answers": {down: true}, "everything": {true, true}}

// network executes an event on links of a client. Examples: hold messages from A to 3; hold answers from 3 to A.
func (s *step) network() {
	verb, list, concerns := s.words[0], []int(nil), [2]bool{}
	if slices.Contains([]string{"hold", "let", "deliver"}, verb) {
		concerns = of(directions, s.words[1])
	}
	var p *client
	for _, word := range s.words[1:] {
		if named := s.client(word); named != nil {
			p = named
		}
		list = append(list, numbers(word)...)
	}
	if list == nil {
		list = numbers(fmt.Sprint("1-", s.masters.N()))
	}
	s.mu.Lock()
	for _, n := range list {
		p.links[n-1].change(verb, concerns, s.o.duration("by"))
	}
	s.mu.Unlock()
	if verb == "deliver" {
		s.passes(settles)
	}
}

func (l *link) change(verb string, concerns [2]bool, by time.Duration) {
	switch verb {
	case "lose": // wake-ups
		l.deaf = true
	case "slow":
		l.delay = by
	case "join":
		l.cut, l.deaf = false, false
	case "cut":
		l.cut = true
		for _, c := range l.conns {
			c.resetLocked()
		}
		return
	default: // hold, let, deliver
		for way := range concerns {
			if !concerns[way] {
				continue
			}
			l.hold[way] = verb == "hold"
			for _, c := range l.conns {
				if verb == "deliver" {
					c.lanes[way].deliver()
				}
			}
		}
	}
}

// toClient executes an action of a client. Example: A locks orders.
func (s *step) toClient() {
	s.call(s.client(s.words[0]), infinitive(s.words[1]), s.words[len(s.words)-1])
	s.passes(settles)
}

// next returns the configuration that follows the client's own: the client adds the masters of list, or keeps only
// them.
func (p *client) next(verb string, list []int) redlock.Configuration {
	var urls []string
	for _, n := range list {
		urls = append(urls, p.w.masters.URLs()[n-1])
	}
	c := admin.Of(p.Locker).Configuration()[0]
	c.Epoch++
	if verb == "add" {
		c.Next = urls
	} else {
		c.Masters, c.Next = urls, nil
	}
	return c
}

// only adapts a call that returns no lock, for client.call.
func only(f func(ctx context.Context) error) func(ctx context.Context) (*redlock.Lock, error) {
	return func(ctx context.Context) (*redlock.Lock, error) { return nil, f(ctx) }
}

func (s *step) call(p *client, verb, name string) {
	o, opts := s.o, p.lockOptions(s.o)
	s.mu.Lock()
	k := p.lock(name)
	s.mu.Unlock()
	switch verb {
	case "lock", "try":
		p.call(o, "lock "+name, "", name, func(ctx context.Context) (*redlock.Lock, error) {
			if verb == "try" {
				return p.TryLock(ctx, name, opts...)
			}
			return p.Lock(ctx, name, opts...)
		})
	case "unlock":
		s.mu.Lock()
		p.locks[name] = p.locks[name][:len(p.locks[name])-1]
		s.mu.Unlock()
		p.call(o, "unlock "+name, "has unlocked "+name, name, only(k.Unlock))
	case "extend":
		p.call(o, "extend "+name, "has extended "+name, name, only(k.Extend))
	case "add", "keep": // masters 4-6
		p.call(o, "change the masters", "uses the changed masters", "", only(func(ctx context.Context) error {
			return admin.Of(p.Locker).Reconfigure(ctx, p.next(verb, numbers(name)))
		}))
	case "finish": // the change
		p.call(o, "finish the change", "has finished the change", "", only(clients.SetOf(p.Locker).FinishChange))
	case "admit":
		p.call(o, "admit all masters", "has admitted all masters", "", only(admin.Of(p.Locker).Admit))
	case "raise": // the epoch
		p.call(o, "raise the epoch", "has raised the epoch", "", only(clients.SetOf(p.Locker).RaiseEpoch))
	case "die": // like SIGKILL: nothing that the client does from now on reaches the masters
		s.mu.Lock()
		defer s.mu.Unlock()
		p.dead = true
		for _, l := range p.links {
			l.change("cut", [2]bool{}, 0)
		}
	default:
		panic(verb)
	}
}
