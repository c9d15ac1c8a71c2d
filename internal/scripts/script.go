package scripts

import (
	"embed"
	"regexp"
	"time"
)

// What the scripts know. A test compares these with their texts.
const (
	WaiterCounts = 20 * time.Second // for how long a waiter counts after it has last asked
	ToldCounts   = time.Second      // for how long, at the most, one counts that was told to ask
	Window       = 15 * time.Second // how far a ballot may be from a master's time
	FenceKept    = 75 * time.Second // how long a fence is kept; if it is ahead by more than Window, longer by the excess
	MaxBallot    = 1<<53 - 1        // bounds every ballot: Lua's numbers are exact only below 2^53
)

// A Script is one Lua program.
type Script struct {
	Name string // for errors and traces
	SHA  string // of Text
	Text string
	// Once: a call is not sent again where the master does not know the script (NOSCRIPT), behind calls made after it.
	Once bool
}

//go:embed *.lua
var files embed.FS

// text returns the text of a script. A line "-- include FILE" stands for the text of that file: the common case of a
// script comes before the functions that only the other cases need.
func text(file string) string {
	b, err := files.ReadFile(file)
	if err != nil {
		panic(err) // it is embedded
	}
	return include.ReplaceAllStringFunc(string(b), func(line string) string {
		return text(include.FindStringSubmatch(line)[1])
	})
}

var include = regexp.MustCompile(`(?m)^-- include (\w+\.lua)\n`)

// The SHA-1 of each text in hexadecimal. They are constants, since computing them panics where FIPS 140 forbids SHA-1.
const (
	acquireSHA = "b280c253ebb96fab07967355511d8c2e32632c20"
	extendSHA  = "4f729c60130bbe2102d59797e32c1c46429c10a0"
	releaseSHA = "efeb3af5a1c5a92269e54dafd36f1336ae45c8f6"
	inspectSHA = "1697c7b59dadf28addd1a39b33e396b017aabebf"
	admitSHA   = "632b70265e479e2f403c93dcacf31dfc7b2152aa"

	sharedAcquireSHA = "92175f5b08e8c9041d0a120a31271efe11d3dfdb"
	sharedExtendSHA  = "4d34fbc3e5d4ab4830cf30e55a79e0d791f2259c"
	sharedReleaseSHA = "87e60333c556c551f42f1f0150533b0052264335"
)

// The scripts. They are never changed.
var (
	Acquire = &Script{"acquire", acquireSHA, text("acquire.lua"), true}
	Extend  = &Script{"extend", extendSHA, text("extend.lua"), false}
	Release = &Script{"release", releaseSHA, text("release.lua"), false}
	Inspect = &Script{"inspect", inspectSHA, text("inspect.lua"), false}
	Admit   = &Script{"admit", admitSHA, text("admit.lua"), false}

	// Of locks with readers.
	SharedAcquire = &Script{"shared acquire", sharedAcquireSHA, text("shared_acquire.lua"), true}
	SharedExtend  = &Script{"shared extend", sharedExtendSHA, text("shared_extend.lua"), false}
	SharedRelease = &Script{"shared release", sharedReleaseSHA, text("shared_release.lua"), false}
)

// All lists the scripts, for loading them on a new connection.
var All = []*Script{Acquire, Extend, Release, Inspect, Admit, SharedAcquire, SharedExtend, SharedRelease}
