package scripts

import "strings"

// A Right is a command that a user on a master needs, and a harmless way to find out whether he has it.
type Right struct {
	// Rule is the word that ACL SETUSER takes behind the +.
	Rule string
	// Lacking says what does not work without it; "" where no lock can be taken or kept.
	Lacking string

	probe []string
}

// What stands in a probe for the key and the channel that it is tried on, and for the rule's own words.
const (
	probeKey     = "\x00key"
	probeChannel = "\x00channel"
)

const (
	deaf = "waiters are not told of releases, and ask every few seconds"
	slow = "each script is sent in full once after a restart of the master"
)

// Rights is the one list of what a user needs, in the order in which the documentation names it. A test compares it
// with the commands in the scripts. A command that writes is tried with an argument that it refuses, since a user
// without the right is refused before the arguments are looked at.
var Rights = []Right{
	{Rule: "info", probe: []string{"INFO", "server"}},
	{Rule: "evalsha", probe: []string{"EVALSHA", "ffffffffffffffffffffffffffffffffffffffff", "0"}},
	{Rule: "eval", probe: []string{"EVAL", "return 1", "0"}},
	{Rule: "script|load", Lacking: slow, probe: []string{"SCRIPT", "LOAD", "return 1"}},
	{Rule: "get", probe: []string{"GET", probeKey}},
	{Rule: "getrange", probe: []string{"GETRANGE", probeKey, "0", "none"}},
	{Rule: "set", probe: []string{"SET", probeKey, "1", "PX", "none"}},
	{Rule: "exists", probe: []string{"EXISTS", probeKey}},
	{Rule: "hexists", probe: []string{"HEXISTS", probeKey, "f"}},
	{Rule: "hget", probe: []string{"HGET", probeKey, "f"}},
	{Rule: "hset", probe: []string{"HSET", probeKey, "f", "1", "odd"}},
	{Rule: "hdel", probe: []string{"HDEL", probeKey, "f"}},
	{Rule: "hlen", probe: []string{"HLEN", probeKey}},
	{Rule: "hscan", probe: []string{"HSCAN", probeKey, "none"}},
	{Rule: "zadd", probe: []string{"ZADD", probeKey, "none", "m"}},
	{Rule: "zrem", probe: []string{"ZREM", probeKey, "m"}},
	{Rule: "zcard", probe: []string{"ZCARD", probeKey}},
	{Rule: "zrange", probe: []string{"ZRANGE", probeKey, "none", "0"}},
	{Rule: "zrangebyscore", probe: []string{"ZRANGEBYSCORE", probeKey, "none", "0"}},
	{Rule: "zrank", probe: []string{"ZRANK", probeKey, "m"}},
	{Rule: "zscore", probe: []string{"ZSCORE", probeKey, "m"}},
	{Rule: "pttl", probe: []string{"PTTL", probeKey}},
	{Rule: "pexpire", probe: []string{"PEXPIRE", probeKey, "none"}},
	{Rule: "time", probe: []string{"TIME"}},
	{Rule: "publish", Lacking: deaf, probe: []string{"PUBLISH", probeChannel, ""}},
	{Rule: "subscribe", Lacking: deaf, probe: []string{"SUBSCRIBE", probeChannel}},
	{Rule: "unsubscribe", Lacking: deaf, probe: []string{"UNSUBSCRIBE", probeChannel}},
	{Rule: "ping", Lacking: deaf, probe: []string{"PING"}},
}

// Probed reports whether the right is tried by this command.
func (r Right) Probed(command string) bool { return r.probe[0] == command }

// Runs reports whether a server runs the scripts: they are loaded by SCRIPT LOAD, or their text is sent by EVAL. Every
// user also needs EVALSHA.
func Runs(scriptLoad, eval bool) bool { return scriptLoad || eval }

// Probe returns the command that tries the right on the keys and channels of p. It changes nothing. An error with the
// code NOPERM, or of an unknown command, is the only no. The rights of a connection for messages are tried last.
func (r Right) Probe(p Prefix) (command string, args []any) {
	const name = "check of rights"
	for _, a := range r.probe[1:] {
		switch a {
		case probeKey:
			a = p.Lock(name)
		case probeChannel:
			a = p.Inbox(name)
		}
		args = append(args, a)
	}
	return r.probe[0], args
}

// Rule is the rule of ACL SETUSER by which a user gets exactly what is needed on the keys and channels of p.
func (p Prefix) Rule() string {
	words := []string{"~" + string(p) + ":*", "resetchannels", "&" + string(p) + ":*", "-@all"}
	for _, r := range Rights {
		words = append(words, "+"+r.Rule)
	}
	return strings.Join(words, " ")
}
