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
	WaiterCounts = 20 * time.Second // how long after its last acquire a waiter is considered
	ToldCounts   = time.Second      // how long, at most, a woken waiter is considered
	FenceKept    = 75 * time.Second // how long a fence is kept; longer if it is ahead of the window
	MaxBallot    = 1<<53 - 1        // largest ballot: Lua's numbers are exact only below 2^53
)

//go:embed *.lua
var files embed.FS

// text returns the text of a script. A line "-- include FILE" is replaced by the text of that file, so that the common
// case of a script comes before the functions that only the other cases need.
func text(file string) string {
	b, err := files.ReadFile(file)
	if err != nil {
		panic(err) // cannot happen: the file is embedded
	}
	return include.ReplaceAllStringFunc(string(b), func(line string) string {
		return text(include.FindStringSubmatch(line)[1])
	})
}

var include = regexp.MustCompile(`(?m)^ *-- include (\w+\.lua)\n`)

// script returns the script that is in the file of its name. sha is the SHA-1 of its text in hexadecimal: a constant,
// because computing SHA-1 panics where FIPS 140 forbids it.
func script(name, sha string, once bool) *frame.Script {
	return &frame.Script{Name: name, SHA: sha, Text: text(strings.ReplaceAll(name, " ", "_") + ".lua"), Once: once}
}

// The scripts. They are read-only.
var (
	Acquire = script("acquire", "7f6e1f00d825297364b92d8bef5cd5a96ac93f29", true)
	Extend  = script("extend", "46486b7ead07ca0be4df9d0c5b3a801c7d15324a", false)
	Release = script("release", "465e908747043d6e2c3abbc796f2e48c840f730e", false)
	Inspect = script("inspect", "172547af3ef69946882e49e0e4b9ddff58b41a63", false)
	Admit   = script("admit", "0cb2d40489ef676a9c35ac03965bbb093c0d566e", false)

	// Scripts of locks with readers.
	SharedAcquire = script("shared acquire", "0ec5cc42127f9d526a1e6a1f34bd7655965fa969", true)
	SharedExtend  = script("shared extend", "0594557a2f0b2575a92d5f399c738db0803df6de", false)
	SharedRelease = script("shared release", "3f9a38627a8f703c1c08bf25290c2a022ff48d18", false)
)

// All lists the scripts, for loading them on a new connection.
var All = []*frame.Script{
	Acquire, Extend, Release, Inspect, Admit, heartbeat.Script, SharedAcquire, SharedExtend, SharedRelease,
}
