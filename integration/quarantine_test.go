package integration

import (
	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/admin"
)

// hasten ends the deployment's quarantines after one TTL of the workload. A normal quarantine lasts at least 30 s,
// because a ballot may differ by 15 s from the masters' time; no ballot of these tests does. hasten does not shorten
// the quarantine of a master that does not answer.
func (x *deployment) hasten() {
	for i, m := range admin.Of(x.locker).Masters() {
		if m.State == "quarantine" && m.Left > x.args.TTL {
			_ = x.shorten(x.list[i]) // the next call retries
		}
	}
}

// shorten rewrites the record of one master, unless another client changes the record concurrently.
func (x *deployment) shorten(m Master) error {
	var opts []redis.DialOption
	if d, ok := m.(interface{ dialOptions() []redis.DialOption }); ok {
		opts = d.dialOptions()
	}
	c, err := redis.DialURL(m.URL(), opts...)
	if err != nil {
		return err
	}
	defer c.Close()
	key := scripts.Prefix(scripts.DefaultPrefix).Admission()
	text, err := redis.String(c.Do("GET", key))
	if err != nil {
		return err
	}
	r, err := scripts.ParseRecord(text)
	if err != nil || r.Admitted {
		return err
	}
	r.Since -= (r.Quarantine - x.args.TTL).Microseconds()
	const replace = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('SET', KEYS[1], ARGV[2])"
	_, err = c.Do("EVAL", replace, 1, key, text, r.String())
	return err
}
