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
	Acquire = script("acquire", "90877bd3ec4713bdc42cb596c3a19ac154414744", true)
	Extend  = script("extend", "89669125a4e6e44abe89d82afd7c9fb9ed3ed6d9", false)
	Release = script("release", "09eac42fa0876a02c578692129fc3b12896f0e79", false)
	Inspect = script("inspect", "e0eae5c48f9582362759c979a8c94b558d52093e", false)
	Admit   = script("admit", "8c05cb8238bb234328239e985bbf86681de8a31c", false)

	// Scripts of the slots of a semaphore, whose other scripts are those of plain locks.
	SlotAcquire = script("slot acquire", "1f0e8f5e2341fa6ab2a37cf8bda330799be841b2", true)
	SlotExtend  = script("slot extend", "6d5f15517c2423a94019951427bf0b72a289ed3e", false)

	// Scripts of readers-writer locks.
	SharedAcquire = script("shared acquire", "2e72ecf490f05348a4aca363cd4768592029e99f", true)
	SharedExtend  = script("shared extend", "f67c0a021499822384d06aaeb4f6413f38bcf66e", false)
	SharedRelease = script("shared release", "e6795b5ae7e0e13957b8004a370ad8b583a32918", false)
)

// All lists the scripts, for loading them on a new connection.
var All = []*frame.Script{
	Acquire, Extend, Release, Inspect, Admit, heartbeat.Script, SlotAcquire, SlotExtend,
	SharedAcquire, SharedExtend, SharedRelease,
}
