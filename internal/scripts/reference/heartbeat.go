package reference

import (
	"regexp"
	"strings"
)

var (
	infoField   = regexp.MustCompile(`(?m)^(\w+):(\S+)`)
	infoReplica = regexp.MustCompile(`(?m)^slave\d+:\S*?,state=(\w+),\S*?,lag=(-?\d+)`)
)

func (c *call) heartbeat() any {
	info := ""
	if c.env.InfoFunc != nil {
		info = c.env.InfoFunc()
	}
	fields := map[string]string{}
	for _, found := range infoField.FindAllStringSubmatch(info, -1) {
		fields[found[1]] = found[2]
	}
	var words []string
	for _, name := range []string{"run_id", "master_replid2", "second_repl_offset", "role", "connected_slaves",
		"maxmemory", "maxmemory_policy", "aof_enabled", "aof_rewrite_in_progress", "aof_rewrite_scheduled",
		"server_time_usec"} {
		word, known := fields[name]
		if !known {
			word = "?"
		}
		words = append(words, word)
	}
	if c.has(1) {
		for _, found := range infoReplica.FindAllStringSubmatch(info, -1) {
			words = append(words, found[1]+","+found[2])
		}
	}
	return strings.Join(words, " ")
}
