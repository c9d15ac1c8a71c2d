package diagnose

import "github.com/redlock-go/redlock/redlock/redlockinfo"

// Servers returns one Master for each address, for metrics: a master beside a cluster is in the shard of each bucket.
// Its state is then the first one that is not voting, Left is the longest, and Pending is the sum.
func Servers(masters []redlockinfo.Master) (servers []redlockinfo.Master) {
	at := map[string]int{}
	for _, m := range masters {
		i, known := at[m.Addr]
		if !known {
			at[m.Addr] = len(servers)
			servers = append(servers, m)
			continue
		}
		one := &servers[i]
		pending, left := one.Pending+m.Pending, max(one.Left, m.Left)
		if one.State == redlockinfo.StateVoting {
			*one = m
		}
		one.Pending, one.Left = pending, left
	}
	return servers
}

// Records returns one Master for each address and list, for metrics of the admission records.
func Records(masters []redlockinfo.Master) (records []redlockinfo.Master) {
	known := map[[2]string]bool{}
	for _, m := range masters {
		if key := [2]string{m.Addr, m.List}; !known[key] {
			known[key] = true
			records = append(records, m)
		}
	}
	return records
}
