package scripts

import (
	_ "embed" // the scripts are files of their own
	"time"
)

// What the scripts know. A test compares these with their texts.
const (
	WaiterCounts = 20 * time.Second // for how long a waiter counts after it has last asked
	ToldCounts   = time.Second      // for how long, at the most, one counts that was told to ask
	Window       = 15 * time.Second // how far a ballot may be from a master's time
	FenceKept    = 60 * time.Second // how long a fence is kept after the larger of the master's time and itself
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

var (
	//go:embed common.lua
	commonText string
	//go:embed acquire.lua
	acquireText string
	//go:embed extend.lua
	extendText string
	//go:embed release.lua
	releaseText string
	//go:embed inspect.lua
	inspectText string
	//go:embed admit.lua
	admitText string
	//go:embed shared_common.lua
	sharedCommonText string
	//go:embed shared_acquire.lua
	sharedAcquireText string
	//go:embed shared_extend.lua
	sharedExtendText string
	//go:embed shared_release.lua
	sharedReleaseText string
)

// The SHA-1 of each text in hexadecimal. They are constants, since computing them panics where FIPS 140 forbids SHA-1.
const (
	acquireSHA = "58bfb9f1854a410d10ce950d34b90aa18436477a"
	extendSHA  = "eba04785c6317acb0fa59b5c46c82ca04800ac70"
	releaseSHA = "6698a1334feb0d1cd10279aee438aed5156fa380"
	inspectSHA = "f75fcdec85ce6e5ba1ec13d04c54caf541d99db2"
	admitSHA   = "90d9bec9008c6a1684bb3343c1be07ac0ebca306"

	sharedAcquireSHA = "0a2cbe2cf4d12c3ac2f0c9f8cdb86ac0f506e62c"
	sharedExtendSHA  = "935986946b4638a79240f5133ae854315861647c"
	sharedReleaseSHA = "e9ef43945bfd88a11dfdebe1786129266b3b853c"
)

// The scripts. They are never changed.
var (
	Acquire = &Script{"acquire", acquireSHA, commonText + acquireText, true}
	Extend  = &Script{"extend", extendSHA, extendText, false}
	Release = &Script{"release", releaseSHA, commonText + releaseText, false}
	Inspect = &Script{"inspect", inspectSHA, inspectText, false}
	Admit   = &Script{"admit", admitSHA, admitText, false}

	// Of locks with readers.
	SharedAcquire = &Script{
		"shared acquire", sharedAcquireSHA, commonText + sharedCommonText + sharedAcquireText, true,
	}
	SharedExtend  = &Script{"shared extend", sharedExtendSHA, sharedExtendText, false}
	SharedRelease = &Script{
		"shared release", sharedReleaseSHA, commonText + sharedCommonText + sharedReleaseText, false,
	}
)

// All lists the scripts, for loading them on a new connection.
var All = []*Script{Acquire, Extend, Release, Inspect, Admit, SharedAcquire, SharedExtend, SharedRelease}

// A Call is one script with its arguments, to be sent to any number of masters. Nobody writes to it once it is sent.
type Call struct {
	Script *Script
	// Args follow the word EVALSHA: the SHA-1, the number of keys, the keys, the arguments. They are strings, ints and
	// int64s.
	Args []any
	// Stamp is the index in Args of the stamp of the admission record that the connection expects, which is put in when
	// the call is written; 0 if there is none.
	Stamp int

	room [15]any // for most Args
}
