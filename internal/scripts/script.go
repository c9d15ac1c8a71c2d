package scripts

import (
	_ "embed" // the scripts are files of their own
	"strings"
)

// A Script is one Lua program. Name is what errors and traces call it.
type Script struct {
	Name string
	// SHA is the SHA-1 of Text in hexadecimal, as EVALSHA wants it. It is a constant, checked by a test, because
	// computing it at start-up panics where FIPS 140 forbids SHA-1.
	SHA  string
	Text string

	sha any // SHA, boxed once
}

var (
	//go:embed acquire.lua
	acquireText string
	//go:embed extend.lua
	extendText string
	//go:embed extendmany.lua
	extendManyText string
	//go:embed release.lua
	releaseText string
	//go:embed inspect.lua
	inspectText string
	//go:embed admit.lua
	admitText string
	//go:embed many.lua
	manyText string
)

// The scripts. They are never changed.
var (
	Acquire    = newScript("acquire", "205baddb66f360c37d77858fcebc74677a7f049a", acquireText)
	Extend     = newScript("extend", "e5c1eca295c99b1768a735bb3f20c78da203db7c", extendText)
	ExtendMany = newScript("extend many", "7f50f06de7524009b8eebd28917ef2c67d897568", extendManyText)
	Release    = newScript("release", "2fd180e3d5ba9abe8ffcc23f16966ab7f888db93", releaseText)
	Inspect    = newScript("inspect", "7751791324f5342f149ee3a656981772955efb7e", inspectText)
	Many       = newScript("acquires and releases", "0378da57430bc722236d6aef0608fc84f8f7784c", together())
	Admit      = newScript("admit", "22f3881f018fe84dea71ddd1a949abccf649614d", admitText)
)

// All lists the scripts, for loading them on a new connection.
var All = []*Script{Acquire, Extend, ExtendMany, Release, Inspect, Admit, Many}

func newScript(name, sha, text string) *Script {
	return &Script{Name: name, SHA: sha, Text: text, sha: sha}
}

// together is the text of Many: those of Acquire and Release as functions, for which the time is read once and memory is
// asked for, and what calls them.
func together() string {
	const ask, write = "redis.call('TIME')", "redis.call('HSET', lock, "
	var b strings.Builder
	b.WriteString("local read\nlocal function time()\n  if not read then\n    read = " + ask + "\n    read[1], read[2] = read[1] + 0, read[2] + 0\n  end\n  return read\nend\n")
	b.WriteString("local full\nlocal function room()\n  if full then error(full, 0) end\nend\n")
	for _, f := range [...]struct{ name, text string }{{"acquire", acquireText}, {"release", releaseText}} {
		b.WriteString("local function " + f.name + "(KEYS, ARGV)\n" + strings.NewReplacer(ask, "time()", write, "room()\n"+write).Replace(f.text) + "end\n")
	}
	b.WriteString(manyText)
	return b.String()
}

// A Call is one script with its arguments, to be sent to any number of masters. Nobody writes to it once it is sent.
type Call struct {
	Script *Script
	// Args is what follows the word EVALSHA: the SHA-1, the number of keys, the keys, the arguments. The elements
	// are strings, ints and int64s.
	Args []any
	// Stamp is the index in Args of the argument that differs from master to master, the marker that the connection
	// expects; 0 where there is none. What stands there is overwritten in a copy when the call is written.
	Stamp int
}
