package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// A distance is a master and how far it is to be.
type distance struct {
	URL       string        `json:"url"`
	RoundTrip time.Duration `json:"round_trip"`
}

// A far is a process with a proxy before each master. It is one of its own, so that its delays are exact to some tens of
// microseconds: it may let threads sleep without taking them from the client that is measured.
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

func (f *far) close() error { return f.crew.close() }

// farMain is the process: it answers with the URLs to use, and ends with its input.
func farMain(list []distance, dec *json.Decoder, enc *json.Encoder) (code int) {
	runtime.GOMAXPROCS(8 * (len(list) + 1)) // more than there are sleepers, at a few connections a proxy
	var a answer
	var errs []error
	for _, d := range list {
		p, u, err := proxied(d.URL, d.RoundTrip, sleepExactly)
		if err != nil {
			errs = append(errs, err)
			break
		}
		defer func() {
			if err := p.close(); err != nil {
				code = exitFailed
			}
		}()
		a.URLs = append(a.URLs, u)
	}
	a.Err = errText(errors.Join(errs...))
	if err := enc.Encode(a); err != nil || a.Err != "" {
		return exitFailed
	}
	var nothing struct{}
	if err := dec.Decode(&nothing); err == nil {
		fmt.Println("bench: proxies take no jobs")
		return exitFailed
	}
	return exitOK
}
