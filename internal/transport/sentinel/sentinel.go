package sentinel

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/heartbeat"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A Place is the address of a master, and the settings of its failover.
type Place struct {
	Addr      string        // host:port
	Epoch     int64         // increases with each failover
	Replicas  int           // number of known replicas, connected or not: each may be promoted
	DownAfter time.Duration // how long the master must be silent before a failover
	Sentinels int           // number of sentinels that monitor the master
	Quorum    int           // number of sentinels that must agree that the master is down
}

// An Answer is the reply of one sentinel.
type Answer = wire.Answer[Place]

// A Finder looks up one master at its sentinels. It implements transport.Authority. All methods are safe for concurrent
// use.
type Finder struct {
	Name      string // the name of the master in the configuration of the sentinels
	Sentinels []wire.Target
	last      atomic.Pointer[Place] // what a majority has answered last; nil if none has
}

// Find queries all sentinels concurrently, and returns as soon as a majority has answered, or when ctx ends.
func (f *Finder) Find(ctx context.Context) (addr string, err error) {
	need := len(f.Sentinels)/2 + 1
	answers := wire.Poll(ctx, f.Sentinels, need, f.ask)
	best, n := Latest(answers)
	if n < need {
		return "", f.unknown(answers, n, need)
	}
	f.last.Store(&best)
	return best.Addr, nil
}

// Reported implements transport.Authority.
func (f *Finder) Reported() (replicas int, after time.Duration, ok bool) {
	p := f.last.Load()
	if p == nil {
		return 0, 0, false
	}
	return p.Replicas, p.DownAfter, true
}

// InCluster implements transport.Authority.
func (f *Finder) InCluster() bool { return false }

// RuleQuestions implements transport.Authority. The master need not be asked: the sentinels have the rule.
func (f *Finder) RuleQuestions(func(time.Duration)) []wire.Question { return nil }

// PlaceQuestions implements transport.Authority.
func (f *Finder) PlaceQuestions(func(int)) []wire.Question { return nil }

// Heartbeat implements transport.Authority.
func (f *Finder) Heartbeat(string) *frame.Call { return heartbeat.Call(true) }

// Digest implements transport.Authority. The place of the master does not change: another one has another connection.
func (f *Finder) Digest(map[string]string) string { return "-" }

// unknown returns the error for too few addresses. Equal texts are joined, and the cause is the one that all failed
// answers share.
func (f *Finder) unknown(answers []Answer, n, need int) error {
	addrs := map[string][]string{} // by text
	for _, a := range answers {
		if a.Err != nil {
			text := Reason(a)
			addrs[text] = append(addrs[text], a.Addr)
		}
	}
	var texts []string
	for text, list := range addrs {
		slices.Sort(list)
		texts = append(texts, strings.Join(list, ", ")+": "+text)
	}
	slices.Sort(texts)
	cause := wire.SharedCause(answers)
	switch cause {
	case fault.Unknown, fault.NotListening, fault.Closed, fault.Hangs: // the master itself may run
		cause = fault.NoSentinels
	}
	return fault.New(fmt.Sprintf("%d of %d sentinels returned the address of the master %q, %d are needed: %s", n,
		len(f.Sentinels), f.Name, need, strings.Join(texts, "; ")), cause)
}

// Reason returns the text of the error of a sentinel, without its address, and without what is said of masters.
func Reason(a Answer) string {
	return strings.ReplaceAll(strings.TrimPrefix(a.Err.Error(), "master is down: "), " "+a.Addr+":", "")
}

// Latest returns the place with the largest failover epoch, and the number of answers without an error. Replicas of the
// place is the largest number that a sentinel reported, and DownAfter the shortest time, because any of the sentinels
// may lead the next failover.
func Latest(answers []Answer) (best Place, n int) {
	for _, a := range answers {
		p := a.Value
		if a.Err != nil {
			continue
		}
		if n++; n == 1 {
			best = p
		}
		replicas, downAfter := max(best.Replicas, p.Replicas), min(best.DownAfter, p.DownAfter)
		if p.Epoch > best.Epoch {
			best = p
		}
		best.Replicas, best.DownAfter = replicas, downAfter
	}
	return best, n
}

// Survey queries all sentinels, and waits for all answers, or until ctx ends. The answers are in the order of the
// sentinels.
func (f *Finder) Survey(ctx context.Context) []Answer {
	list := wire.Poll(ctx, f.Sentinels, len(f.Sentinels), f.ask)
	slices.SortFunc(list, func(a, b Answer) int { return strings.Compare(a.Addr, b.Addr) })
	return list
}

// ask queries one sentinel.
func (f *Finder) ask(ctx context.Context, t *wire.Target) (p Place, err error) {
	err = t.Query(ctx, wire.Question{
		Op: "sentinel master", Command: []string{"SENTINEL", "MASTER", f.Name}, TakeFunc: func(reply any) (err error) {
			p, err = placeOf(reply)
			return err
		},
	})
	if fault.IsCode(err, "NOAUTH") || fault.IsCode(err, "WRONGPASS") {
		err = fault.New(err.Error()+" (sentinels have credentials of their own)", fault.SentinelLogin, err)
	}
	return p, err
}

// placeOf parses the reply to SENTINEL MASTER.
func placeOf(reply any) (p Place, err error) {
	fields, err := redis.StringMap(reply, nil)
	if err != nil {
		return p, err
	}
	number := func(key string) int64 {
		n, wrong := strconv.ParseInt(fields[key], 10, 64)
		if wrong != nil || n < 0 {
			err = fmt.Errorf("the reply has %s=%.40q", key, fields[key])
		}
		return n
	}
	p = Place{
		Addr: net.JoinHostPort(fields["ip"], fields["port"]), Epoch: number("config-epoch"),
		Replicas:  int(number("num-slaves")),
		DownAfter: time.Duration(number("down-after-milliseconds")) * time.Millisecond,
		Sentinels: int(number("num-other-sentinels")) + 1, Quorum: int(number("quorum")),
	}
	if err == nil && (fields["ip"] == "" || fields["port"] == "") {
		err = fmt.Errorf("the reply has no address")
	}
	return p, err
}
