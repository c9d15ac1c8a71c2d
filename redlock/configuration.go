package redlock

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/redlock-go/redlock/internal/client"
)

// A Configuration lists the masters that hold the locks of a deployment. A deployment changes its masters by going from
// one configuration to the next. The epoch grows by one each time:
//
//	0  the old masters            {"epoch": 0, "masters": [...]}
//	1  the old and the next       {"epoch": 1, "masters": [...], "next": [...]}    a lock needs a majority of each
//	2  the next masters only      {"epoch": 2, "masters": [the next]}
//
// and so on. An even epoch has one set of masters. An odd epoch has two sets, which may share masters. See
// Admin.Reconfigure of package admin.
type Configuration struct {
	// Epoch is the number of the configuration, from 0 to 2^53-1.
	Epoch int64 `json:"epoch"`
	// Masters are the URLs of the masters, in the form of [pool.URL], or their names in the pool. All clients must name
	// the same masters. To replace a master, go to the next configuration; never just change this list.
	Masters []string `json:"masters"`
	// Next are the masters that the deployment changes to. Only a configuration with an odd epoch has them.
	Next []string `json:"next,omitempty"`
}

// ParseConfiguration reads a Configuration from JSON and checks its epoch. Its masters are checked by the call that
// uses it. Unknown fields are errors. Errors match [ErrInvalid]; their texts contain no credentials.
func ParseConfiguration(text []byte) (Configuration, error) {
	var s Configuration
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Configuration{}, client.Invalid("configuration of masters: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) { // Decoder.More would miss a trailing bracket
		return Configuration{}, client.Invalid("unexpected text after the configuration of masters")
	}
	c := client.Configuration(s)
	return s, c.Check()
}

// WithConfiguration sets the initial configuration of each shard. Masters that are not in the pool are added to it. The
// default, and the meaning of a zero Configuration, is epoch 0 with all masters of the pool.
func WithConfiguration(s ...Configuration) Option {
	return ofLocker(func(c *client.Config) {
		c.Initial = nil
		for _, one := range s {
			c.Initial = append(c.Initial, client.Configuration(one))
		}
	})
}
