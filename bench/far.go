package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A distance is a number of masters and how far they are to be.
type distance struct {
	URLs      []string      `json:"urls"`
	RoundTrip time.Duration `json:"round_trip"`
}

// A far is a process with a proxy before each master. It is one of its own, so that what it does is not the work of the
// client that is measured.
type far struct {
	crew *crew
	urls []string
}

// goFar starts the process. It ends with close.
func goFar(ctx context.Context, urls []string, roundTrip time.Duration) (*far, error) {
	c, err := startCrewOf(1, 0, func(int) setup { return setup{Distance: &distance{urls, roundTrip}} })
	if err != nil {
		return nil, err
	}
	a, err := c.answers(ctx)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return &far{c, a[0].URLs}, nil
}

// slow makes the replies of the first n masters later by d, besides their distance.
func (f *far) slow(ctx context.Context, n int, d time.Duration) error {
	_, err := f.crew.do(ctx, func(int) job { return job{Op: opDelay, Count: n, Pause: d} })
	return err
}

// pid is the process.
func (f *far) pid() int { return f.crew.members[0].cmd.Process.Pid }

func (f *far) close() error { return f.crew.close() }

// farMain is the process: it answers with the URLs to use, takes delays, and ends with its input.
func farMain(d distance, dec *json.Decoder, enc *json.Encoder) (code int) {
	var a answer
	var failed error
	var proxies []*proxy
	for _, u := range d.URLs {
		p, near, err := proxied(u, d.RoundTrip)
		if err != nil {
			failed = err
			break
		}
		defer func() {
			if err := p.close(); err != nil {
				code = exitFailed
			}
		}()
		a.URLs, proxies = append(a.URLs, near), append(proxies, p)
	}
	a.Err = errText(failed)
	if err := enc.Encode(a); err != nil || a.Err != "" {
		return exitFailed
	}
	for {
		var j job
		if dec.Decode(&j) != nil {
			return exitOK
		}
		a = answer{}
		if j.Op != opDelay || j.Count > len(proxies) {
			a.Err = fmt.Sprintf("bench: proxies know no %q of %d", j.Op, j.Count)
		} else {
			for _, p := range proxies[:j.Count] {
				p.setDelay(j.Pause)
			}
		}
		if enc.Encode(a) != nil {
			return exitFailed
		}
	}
}
