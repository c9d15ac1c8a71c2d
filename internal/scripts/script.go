package scripts

import (
	"embed"
	"regexp"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/heartbeat"
)

// Constants of the scripts. A test compares these with the texts of the scripts.
const (
	WaiterCounts = 20 * time.Second // how long a waiter counts after its last acquire
	ToldCounts   = time.Second      // maximum time for which a woken waiter counts
	FenceKept    = 75 * time.Second // TTL of a fence; longer if the fence is more than 15 s ahead of the master's clock
	MaxBallot    = 1<<53 - 1        // largest ballot: Lua's numbers are exact only up to 2^53
)

//go:embed *.lua
var files embed.FS

// text returns the text of a script, without the lines that are comments. A line "-- include FILE" is replaced by the
// text of that file, so that the common case of a script comes before the functions that only the other cases need.
func text(file string) string {
	b, err := files.ReadFile(file)
	if err != nil {
		panic(err) // cannot happen: the file is embedded
	}
	whole := include.ReplaceAllStringFunc(string(b), func(line string) string {
		return text(include.FindStringSubmatch(line)[1])
	})
	return comment.ReplaceAllString(whole, "")
}

var comment = regexp.MustCompile(`(?m)^ *--.*\n`)

var include = regexp.MustCompile(`(?m)^ *-- include (\w+\.lua)\n`)

// script returns the script whose file has this name, with underscores for spaces. sha is the SHA-1 of its text in
// hexadecimal: a constant, because computing SHA-1 panics where FIPS 140 forbids it. once: see frame.Script.
func script(name, sha string, once bool) *frame.Script {
	return &frame.Script{Name: name, SHA: sha, Text: text(strings.ReplaceAll(name, " ", "_") + ".lua"), Once: once}
}

// The scripts. They are read-only.
var (
	Acquire = script("acquire", "569f0f9e258d41776d8393831c5d43c1e94e6955", true)
	Extend  = script("extend", "35af038ed2e577027ed4c425fe719598b9cbd2ed", false)
	Release = script("release", "879862e885cb1b0086c81840c6aacaf74a97a9e0", false)
	Inspect = script("inspect", "e0d4c1b4beb192953788671f367affcb911736f8", false)
	Admit   = script("admit", "3390a5481a95003c47ecb5520962e31a11499cd3", false)

	// Scripts of readers-writer locks.
	SharedAcquire = script("shared acquire", "1813c5a7ddf36a818b8ce03978548b82ae233c0b", true)
	SharedExtend  = script("shared extend", "abb5f5596c8cc0933ae9930847fc77a5394c0011", false)
	SharedRelease = script("shared release", "36dd16706b097354cc99a9f17ceea0d206a4ea4d", false)
)

// All lists the scripts, for loading them on a new connection.
var All = []*frame.Script{
	Acquire, Extend, Release, Inspect, Admit, heartbeat.Script, SharedAcquire, SharedExtend, SharedRelease,
}
