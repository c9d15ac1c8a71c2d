package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A distance is a master and how far it is to be.
type distance struct {
	URL       string        `json:"url"`
	RoundTrip time.Duration `json:"round_trip"`
}

// distances puts all masters at one distance.
func distances(urls []string, roundTrip time.Duration) (list []distance) {
	for _, u := range urls {
		list = append(list, distance{u, roundTrip})
	}
	return list
}

// A far is a process with a proxy before each master. It is one of its own, so that what it does is not the work of the client
// that is measured.
type far struct {
	crew *crew
	urls []string
}

// goFar starts the process. It ends with close.
func goFar(ctx context.Context, list []distance) (*far, error) {
	c, err := startCrewOf(1, 0, func(int) setup { return setup{Distances: list} })
	if err != nil {
		return nil, err
	}
	a, err := c.answers(ctx)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return &far{c, a[0].URLs}, nil
}

// setDelay makes the replies of master i later by d, besides its distance.
func (f *far) setDelay(ctx context.Context, i int, d time.Duration) error {
	_, err := f.crew.do(ctx, func(int) job { return job{Op: opDelay, Count: i, Pause: d} })
	return err
}

// pid is the process.
func (f *far) pid() int { return f.crew.members[0].cmd.Process.Pid }

func (f *far) close() error { return f.crew.close() }

// farMain is the process: it answers with the URLs to use, takes delays, and ends with its input.
func farMain(list []distance, dec *json.Decoder, enc *json.Encoder) (code int) {
	var a answer
	var errs []error
	var proxies []*proxy
	for _, d := range list {
		p, u, err := proxied(d.URL, d.RoundTrip)
		if err != nil {
			errs = append(errs, err)
			break
		}
		defer func() {
			if err := p.close(); err != nil {
				code = exitFailed
			}
		}()
		a.URLs, proxies = append(a.URLs, u), append(proxies, p)
	}
	a.Err = errText(errors.Join(errs...))
	if err := enc.Encode(a); err != nil || a.Err != "" {
		return exitFailed
	}
	for {
		var j job
		if dec.Decode(&j) != nil {
			return exitOK
		}
		a = answer{}
		if j.Op == opDelay && j.Count >= 0 && j.Count < len(proxies) {
			proxies[j.Count].setDelay(j.Pause)
		} else {
			a.Err = fmt.Sprintf("bench: proxies know no %q of %d", j.Op, j.Count)
		}
		if enc.Encode(a) != nil {
			return exitFailed
		}
	}
}
