package scripts

import (
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/heartbeat"
)

// A Right is a command that the user needs on a master, with a harmless test of this right.
type Right struct {
	// Rule is the word after the + in ACL SETUSER.
	Rule string
	// Lacking describes what does not work without the right; "" if no lock can be acquired or kept.
	Lacking string

	probe []string
}

// Placeholders in a probe for the key and the channel to test.
const (
	probeKey     = "\x00key"
	probeChannel = "\x00channel"
)

const (
	noWakeUps  = "waiters are not notified of releases, and poll every few seconds"
	sentInFull = "after a restart of the master, each script is sent in full once"
)

// Rights lists everything that a user needs, in the order of the documentation. A test compares it with the commands in
// the scripts. A write command is tested with an argument that it rejects, because the server checks the right before
// the arguments.
var Rights = []Right{
	{Rule: "info", probe: []string{"INFO", "server"}},
	{Rule: "evalsha", probe: []string{"EVALSHA", "ffffffffffffffffffffffffffffffffffffffff", "0"}},
	{Rule: "eval", probe: []string{"EVAL", "return 1", "0"}},
	{Rule: "script|load", Lacking: sentInFull, probe: []string{"SCRIPT", "LOAD", heartbeat.Script.Text}},
	{Rule: "getrange", probe: []string{"GETRANGE", probeKey, "0", "none"}},
	{Rule: "set", probe: []string{"SET", probeKey, "1", "PX", "none"}},
	{Rule: "exists", probe: []string{"EXISTS", probeKey}},
	{Rule: "hget", probe: []string{"HGET", probeKey, "f"}},
	{Rule: "hmget", probe: []string{"HMGET", probeKey, "f"}},
	{Rule: "hgetall", probe: []string{"HGETALL", probeKey}},
	{Rule: "hset", probe: []string{"HSET", probeKey, "f", "1", "odd"}},
	{Rule: "hdel", probe: []string{"HDEL", probeKey, "f"}},
	{Rule: "hlen", probe: []string{"HLEN", probeKey}},
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
	{Rule: "publish", Lacking: noWakeUps, probe: []string{"PUBLISH", probeChannel, ""}},
	{Rule: "subscribe", Lacking: noWakeUps, probe: []string{"SUBSCRIBE", probeChannel}},
	{Rule: "unsubscribe", Lacking: noWakeUps, probe: []string{"UNSUBSCRIBE", probeChannel}},
	{Rule: "ping", Lacking: noWakeUps, probe: []string{"PING"}},
}

// Probe returns the command that tests the right on the keys and channels of p. The command changes nothing. The right
// is missing only if the error has the code NOPERM, or says that the command is unknown. Rights for subscriptions must
// be tested last on a connection.
func (right Right) Probe(p Prefix) (command []string) {
	const name = "check of rights"
	for _, a := range right.probe {
		switch a {
		case probeKey:
			a = p.Lock(name)
		case probeChannel:
			a = p.Inbox(name)
		}
		command = append(command, a)
	}
	return command
}

// On returns "keys" or "channels" if the right is one on those of the prefix, and "" otherwise.
func (right Right) On() string {
	switch {
	case slices.Contains(right.probe, probeKey):
		return "keys"
	case slices.Contains(right.probe, probeChannel):
		return "channels"
	}
	return ""
}

// Probes returns a call of each script that clients run, on a name that no lock uses. Sent with a stamp that no
// admission record has, none of the calls changes anything.
func Probes(p Prefix) (list []*frame.Call) {
	const name, lease = "check of scripts", "check:0"
	e, term := NewEncoder(p, 0), Term{TTL: time.Second}
	list = append(list, heartbeat.Call(false), e.Admit(AdmitRequest{Step: AdmitRead}))
	plain, slot, writer := p.Keys(name), p.Keys(Slot{1, 1}.Name(name)), p.KeysOf(name, Writer)
	for _, k := range []Keys{plain, slot, writer} {
		list = append(list, e.Acquire(&k, lease, term, 1, 1, 1, nil), e.Extend(&k, lease, term, 1, ""),
			e.Release(&k, Ending{Leases: []string{lease}}))
	}
	return append(list, e.Inspect(&plain, 1))
}

// Rule returns the rule of ACL SETUSER that grants exactly the rights needed on the keys and channels of p.
func (p Prefix) Rule() string {
	words := []string{"~" + string(p) + ":*", "resetchannels", "&" + string(p) + ":*", "-@all"}
	for _, right := range Rights {
		words = append(words, "+"+right.Rule)
	}
	return strings.Join(words, " ")
}
