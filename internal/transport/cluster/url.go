package cluster

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Form is the form of the URL of a cluster.
const Form = "redis+cluster://[user:password@]host:port,host:port,...?buckets=64[&allow=two-holders][&name=...]"

// Port is the default port of a node.
const Port = "6379"

const maxBuckets = 300

// BucketsIn returns the number of buckets from the URL of a cluster.
func BucketsIn(u *url.URL) (int, error) {
	n, err := strconv.Atoi(u.Query().Get("buckets"))
	if err != nil || n < 1 || n > maxBuckets || strings.TrimPrefix(u.Path, "/") != "" {
		return 0, fmt.Errorf("the number of buckets, from 1 to %d, is missing; the form is %s", maxBuckets, Form)
	}
	return n, nil
}
