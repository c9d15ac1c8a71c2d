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
	Acquire = script("acquire", "83ec2f5fa282a80ae5ab29fc60f0f0301868290c", true)
	Extend  = script("extend", "89669125a4e6e44abe89d82afd7c9fb9ed3ed6d9", false)
	Release = script("release", "a0d8765927cefa50853e8b6ccafc502cf40571af", false)
	Inspect = script("inspect", "ca413281245ec5dce891474fff6bd3f988575d68", false)
	Admit   = script("admit", "42d6668c8db596f0ff91bda51f2c518feeb0449a", false)

	// Scripts of the slots of a semaphore, whose other scripts are those of plain locks.
	SlotAcquire = script("slot acquire", "b8128484a3db73c5054449e0643b53be6d127da1", true)
	SlotExtend  = script("slot extend", "6d5f15517c2423a94019951427bf0b72a289ed3e", false)

	// Scripts of readers-writer locks.
	SharedAcquire = script("shared acquire", "1775bd9dae874f2f5b920e60687f724e7fa15a83", true)
	SharedExtend  = script("shared extend", "e69a185dcf33f68c0cf26eea69e1aeb8b118168f", false)
	SharedRelease = script("shared release", "11a5dcc080615d6cc82f0f4404df9ecedcac4a56", false)
)

// All lists the scripts, for loading them on a new connection.
var All = []*frame.Script{
	Acquire, Extend, Release, Inspect, Admit, heartbeat.Script, SlotAcquire, SlotExtend,
	SharedAcquire, SharedExtend, SharedRelease,
}
