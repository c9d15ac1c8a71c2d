package sentinel

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A Place is the address of a master, and the rule of its failover.
type Place struct {
	Addr      string        // host:port
	Epoch     int64         // increases with each failover
	Replicas  int           // known replicas, connected or not: any of them may be promoted
	DownAfter time.Duration // how long the master must be silent before a failover
	Sentinels int           // number of sentinels that monitor it
	Quorum    int           // number of sentinels that must find it silent
}

// An Answer is the reply of one sentinel.
type Answer struct {
	Sentinel string // its address
	Place    Place
	Err      error
}

// A Finder looks up one master at its sentinels. All methods are safe for concurrent use.
type Finder struct {
	Name      string // the name of the master in the configuration of the sentinels
	Sentinels []wire.Target
}

// Find queries all sentinels at once, and returns as soon as a majority has answered, or when ctx ends. The place is
// that of the latest failover. The number of replicas is the largest that was reported, and DownAfter the shortest,
// since any of the sentinels may lead the next failover.
func (f *Finder) Find(ctx context.Context) (Place, error) {
	need := len(f.Sentinels)/2 + 1
	var best Place
	var causes []string
	answered := 0
	for _, a := range f.ask(ctx, need) {
		p := a.Place
		if a.Err != nil {
			causes = append(causes, fmt.Sprintf("%s: %v", a.Sentinel, a.Err))
			continue
		}
		if answered++; answered == 1 {
			best = p
		}
		replicas, downAfter := max(best.Replicas, p.Replicas), min(best.DownAfter, p.DownAfter)
		if p.Epoch > best.Epoch {
			best = p
		}
		best.Replicas, best.DownAfter = replicas, downAfter
	}
	if answered < need {
		slices.Sort(causes)
		return Place{}, fmt.Errorf("%d of %d sentinels returned the address of the master %q, %d are needed: %s", answered,
			len(f.Sentinels), f.Name, need, strings.Join(causes, "; "))
	}
	return best, nil
}

// Survey queries all sentinels, and waits for all answers, or until ctx ends. The answers are in the order of the
// sentinels.
func (f *Finder) Survey(ctx context.Context) []Answer {
	list := f.ask(ctx, len(f.Sentinels))
	slices.SortFunc(list, func(a, b Answer) int { return strings.Compare(a.Sentinel, b.Sentinel) })
	return list
}

// ask queries all sentinels at once, until enough of them have reported a place, or all have answered.
func (f *Finder) ask(ctx context.Context, enough int) (list []Answer) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan Answer, len(f.Sentinels))
	for i := range f.Sentinels {
		go func() { answers <- f.askOne(ctx, &f.Sentinels[i]) }()
	}
	answered := 0
	for range f.Sentinels { // wait for all: the context ends those that are not needed
		a := <-answers
		if answered == enough {
			continue
		}
		if list = append(list, a); a.Err == nil {
			answered++
		}
		if answered == enough {
			cancel()
		}
	}
	return list
}

func (f *Finder) askOne(ctx context.Context, t *wire.Target) Answer {
	a := Answer{Sentinel: t.Addr}
	c, _, err := t.Connect(ctx, func(c *wire.Conn) (string, error) {
		return c.Ask([]wire.Question{{
			Op: "sentinel master", Command: []any{"SENTINEL", "MASTER", f.Name}, TakeFunc: func(reply any) (err error) {
				a.Place, err = placeOf(reply)
				return err
			},
		}})
	})
	if err == nil {
		c.Close()
	}
	if fault.IsCode(err, "NOAUTH") || fault.IsCode(err, "WRONGPASS") {
		err = fmt.Errorf("%w (sentinels have credentials of their own: WithSentinelCredentials)", err)
	}
	a.Err = err
	return a
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
			err = fmt.Errorf("it says %s=%.40q", key, fields[key])
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
		err = fmt.Errorf("it says no address")
	}
	return p, err
}
