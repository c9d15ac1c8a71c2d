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
	Acquire = script("acquire", "0a838ab2600711515ade1753e5d8b022c450c5ed", true)
	Extend  = script("extend", "bd33d6b05ffb137022349e5c2720ef376ccbc4da", false)
	Release = script("release", "ea02387d10a653e1df6c99f79181948326647307", false)
	Inspect = script("inspect", "ab19753c7f0a43fe463ab840058f11b275a3b681", false)
	Admit   = script("admit", "e6ba572860519b03cfa9e1057f9a45b3ac563464", false)

	// Scripts of readers-writer locks.
	SharedAcquire = script("shared acquire", "564a9a08b7bb187f4f1eea5c456dea12a970cc95", true)
	SharedExtend  = script("shared extend", "f5f23b95c229cc1c791f7dd04f508dd7f9b77890", false)
	SharedRelease = script("shared release", "6535ac595f547ccf193dcb5b1cacd7a235d2d049", false)
)

// All lists the scripts, for loading them on a new connection.
var All = []*frame.Script{
	Acquire, Extend, Release, Inspect, Admit, heartbeat.Script, SharedAcquire, SharedExtend, SharedRelease,
}
