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

// script returns the script whose file has this name, with underscores for spaces. sha is the SHA-1 of its text in
// hexadecimal: a constant, because computing SHA-1 panics where FIPS 140 forbids it. once: see frame.Script.
func script(name, sha string, once bool) *frame.Script {
	return &frame.Script{Name: name, SHA: sha, Text: text(strings.ReplaceAll(name, " ", "_") + ".lua"), Once: once}
}

// The scripts. They are read-only.
var (
	Acquire = script("acquire", "c6c1d535a3e7bb69d605bc2ee0c07145146392d2", true)
	Extend  = script("extend", "80aa5ff15b87028aa124798171a9c9a0b207f2ac", false)
	Release = script("release", "f3cc8115a4e36f87775bf25ce6711b6ed222651e", false)
	Inspect = script("inspect", "d7111f5124dae71b03685ab85828611eb5919028", false)
	Admit   = script("admit", "04ffbee11a01f8a065bb3ec6961591f7599678d5", false)

	// Scripts of readers-writer locks.
	SharedAcquire = script("shared acquire", "f036d66d181138632a76d42f8cac204b389751fc", true)
	SharedExtend  = script("shared extend", "447d329d1148e9ed0865336d276e99839c454d6a", false)
	SharedRelease = script("shared release", "659ea8ca41e94fd616e491f2d7ed44fa4ae5c531", false)
)

// All lists the scripts, for loading them on a new connection.
var All = []*frame.Script{
	Acquire, Extend, Release, Inspect, Admit, heartbeat.Script, SharedAcquire, SharedExtend, SharedRelease,
}
