package memory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

const (
	errArgs    reference.Error = "ERR wrong number of arguments"
	errInteger reference.Error = "ERR value is not an integer or out of range"
	errSyntax  reference.Error = "ERR syntax error"
	errNoSuch  reference.Error = "NOSCRIPT No matching script. Please use EVAL."
	errForeign reference.Error = "ERR the in-memory master runs the scripts of redlock and no others"
	errReplica reference.Error = "READONLY You can't write against a read only replica."
	errNoAuth  reference.Error = "ERR AUTH <password> called without any password configured for the default user. " +
		"Are you sure your configuration is correct?"
)

// A command executes one command; args includes its name. It returns answered if it has queued its replies itself.
type command struct {
	least int // minimum number of args, with the name
	run   func(c *conn, now int64, args []string) any
}

type answeredType struct{}

var answered any = answeredType{}

// commands are the supported commands other than scripts.
var commands = map[string]command{
	"PING":        {1, ping},
	"ECHO":        {2, func(_ *conn, _ int64, args []string) any { return args[1] }},
	"AUTH":        {2, func(*conn, int64, []string) any { return errNoAuth }},
	"SELECT":      {2, selectDB},
	"CLIENT":      {2, client},
	"QUIT":        {1, func(*conn, int64, []string) any { return status("OK") }},
	"INFO":        {1, func(c *conn, now int64, args []string) any { return c.m.infoLocked(now, args[1:]) }},
	"TIME":        {1, clockTime},
	"CONFIG":      {3, config},
	"SCRIPT":      {2, script},
	"GET":         {2, get},
	"SET":         {3, set},
	"DEL":         {2, del},
	"EXISTS":      {2, exists},
	"PTTL":        {2, func(c *conn, now int64, args []string) any { return c.m.state.TTL(now, args[1]) }},
	"HGETALL":     {2, hgetall},
	"DBSIZE":      {1, func(c *conn, now int64, _ []string) any { return len(c.m.state.Keys(now)) }},
	"FLUSHALL":    {1, flush},
	"FLUSHDB":     {1, flush},
	"PUBLISH":     {3, func(c *conn, _ int64, args []string) any { return c.m.publishLocked(args[1], args[2]) }},
	"SUBSCRIBE":   {2, subscribe},
	"UNSUBSCRIBE": {1, unsubscribe},
}

// commandLocked executes one command, queues its reply, and reports whether the connection is still open.
func (c *conn) commandLocked(args []string) bool {
	m := c.m
	name := strings.ToUpper(args[0])
	if name == "EVALSHA" || name == "EVAL" {
		return c.scriptLocked(name, args)
	}
	cmd, known := commands[name]
	switch {
	case !known:
		c.answerLocked(reference.Error(fmt.Sprintf("ERR unknown command '%.128s', with args beginning with: ", args[0])))
		return true
	case len(args) < cmd.least:
		c.answerLocked(errArgs + reference.Error(" for '"+strings.ToLower(name)+"' command"))
		return true
	case len(c.channels) > 0 && !slices.Contains([]string{"SUBSCRIBE", "UNSUBSCRIBE", "PING", "QUIT"}, name):
		c.answerLocked(reference.Error("ERR Can't execute '" + strings.ToLower(name) + "': only (P|S)SUBSCRIBE / " +
			"(P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"))
		return true
	}
	m.counts[name]++
	if reply := cmd.run(c, m.clock.now(), args); reply != answered {
		c.answerLocked(reply)
	}
	return true
}

// scriptLocked executes EVALSHA or EVAL, with the injected faults.
func (c *conn) scriptLocked(name string, args []string) bool {
	m := c.m
	s, keys, argv, failed := m.findScriptLocked(name, args)
	if failed != "" {
		m.counts[name]++
		c.answerLocked(failed)
		return true
	}
	if s == scripts.Heartbeat { // the faults of scripts are for those of locks
		m.counts[s.Name]++
		c.answerLocked(m.evalLocked(s, keys, argv))
		return true
	}
	if m.faults.noEffect > 0 {
		m.faults.noEffect--
		c.cutLocked()
		return false
	}
	reply := m.evalLocked(s, keys, argv)
	m.counts[s.Name]++
	if m.faults.noReply > 0 {
		m.faults.noReply--
		c.cutLocked()
		return false
	}
	c.answerLocked(reply)
	return true
}

func (m *Master) findScriptLocked(name string, args []string) (
	s *scripts.Script, keys, argv []string, failed reference.Error,
) {
	if len(args) < 3 {
		return nil, nil, nil, errArgs + reference.Error(" for '"+strings.ToLower(name)+"' command")
	}
	n, err := strconv.Atoi(args[2])
	switch {
	case err != nil:
		return nil, nil, nil, errInteger
	case n < 0:
		return nil, nil, nil, "ERR Number of keys can't be negative"
	case n > len(args)-3:
		return nil, nil, nil, "ERR Number of keys can't be greater than number of args"
	}
	if name == "EVALSHA" {
		if s = m.loaded[strings.ToLower(args[1])]; s == nil {
			return nil, nil, nil, errNoSuch
		}
	} else if s = m.loadLocked(args[1]); s == nil {
		return nil, nil, nil, errForeign
	}
	return s, args[3 : 3+n], args[3+n:], ""
}

// loadLocked caches the script with this text; it returns nil if the text is unknown.
func (m *Master) loadLocked(text string) *scripts.Script {
	for _, s := range scripts.All {
		if s.Text == text {
			m.loaded[s.SHA] = s
			return s
		}
	}
	return nil
}

func (m *Master) evalLocked(s *scripts.Script, keys, argv []string) any {
	if m.faults.refusal != "" {
		return reference.Error(m.faults.refusal)
	}
	now, env := m.clock.now(), m.server.env
	env.InfoFunc = func() string { return m.infoLocked(now, nil) }
	if m.server.role == "master" {
		env.Publish = m.publishLocked
		return m.state.Eval(now, env, s, keys, argv)
	}
	// A replica stops a script at its first write. Expired keys do not count as written.
	m.state.Keys(now) // drop expired keys
	trial := m.state.Clone()
	env.Publish = func(channel, _ string) int { return len(m.subs[channel]) }
	reply := trial.Eval(now, env, s, keys, argv)
	if trial.String() != m.state.String() {
		return errReplica
	}
	return reply
}

func ping(c *conn, _ int64, args []string) any {
	text := "PONG"
	if len(args) > 1 {
		text = args[1]
	}
	switch {
	case len(c.channels) > 0 && len(args) > 1:
		return []any{"pong", text}
	case len(c.channels) > 0:
		return []any{"pong", ""}
	case len(args) > 1:
		return text
	default:
		return status(text)
	}
}

// selectDB accepts the sixteen databases of a default configuration, which are all the same here.
func selectDB(_ *conn, _ int64, args []string) any {
	if n, err := strconv.Atoi(args[1]); err != nil {
		return errInteger
	} else if n < 0 || n > 15 {
		return reference.Error("ERR DB index is out of range")
	}
	return status("OK")
}

func client(_ *conn, _ int64, args []string) any {
	switch strings.ToUpper(args[1]) {
	case "SETNAME", "SETINFO", "NO-EVICT", "NO-TOUCH":
		return status("OK")
	default:
		return reference.Error("ERR unknown subcommand '" + args[1] + "'. Try CLIENT HELP.")
	}
}

// config supports CONFIG GET of names without patterns.
func config(c *conn, _ int64, args []string) any {
	if strings.ToUpper(args[1]) != "GET" {
		return reference.Error("ERR unknown subcommand '" + args[1] + "'. Try CONFIG HELP.")
	}
	reply := []any{}
	for _, name := range args[2:] {
		name = strings.ToLower(name)
		if value, known := c.m.server.config[name]; known {
			reply = append(reply, name, value)
		}
	}
	return reply
}

func clockTime(_ *conn, now int64, _ []string) any {
	return []any{strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10)}
}

func script(c *conn, _ int64, args []string) any {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "LOAD" && len(args) == 3:
		s := c.m.loadLocked(args[2])
		if s == nil {
			return errForeign
		}
		return s.SHA
	case sub == "EXISTS" && len(args) > 2:
		var reply []any
		for _, sha := range args[2:] {
			n := int64(0)
			if c.m.loaded[strings.ToLower(sha)] != nil {
				n = 1
			}
			reply = append(reply, n)
		}
		return reply
	case sub == "FLUSH":
		clear(c.m.loaded)
		return status("OK")
	default:
		return reference.Error("ERR unknown subcommand or wrong number of arguments for '" + args[1] + "'. Try SCRIPT HELP.")
	}
}

func get(c *conn, now int64, args []string) any {
	v := c.m.state.Look(now, args[1])
	switch v.Type {
	case reference.None:
		return nil
	case reference.String:
		return v.Text
	default:
		return reference.WrongType
	}
}

// set supports PX and EX.
func set(c *conn, now int64, args []string) any {
	ttl := int64(0)
	switch {
	case len(args) == 3:
	case len(args) == 5:
		n, err := strconv.ParseInt(args[4], 10, 64)
		if err != nil {
			return errInteger
		}
		switch strings.ToUpper(args[3]) {
		case "PX":
			ttl = n
		case "EX":
			ttl = n * 1000
		default:
			return errSyntax
		}
		if ttl <= 0 {
			return reference.Error("ERR invalid expire time in 'set' command")
		}
	default:
		return errSyntax
	}
	c.m.state.Set(now, args[1], args[2], ttl)
	return status("OK")
}

func del(c *conn, now int64, args []string) any {
	n := int64(0)
	for _, key := range args[1:] {
		if c.m.state.Delete(now, key) {
			n++
		}
	}
	return n
}

func exists(c *conn, now int64, args []string) any {
	n := int64(0)
	for _, key := range args[1:] {
		if c.m.state.Look(now, key).Type != reference.None {
			n++
		}
	}
	return n
}

func hgetall(c *conn, now int64, args []string) any {
	v := c.m.state.Look(now, args[1])
	if v.Type != reference.None && v.Type != reference.Hash {
		return reference.WrongType
	}
	reply := []any{}
	for _, f := range v.Fields {
		reply = append(reply, f.Name, f.Value)
	}
	return reply
}

func flush(c *conn, _ int64, _ []string) any {
	c.m.state.Flush()
	return status("OK")
}

func subscribe(c *conn, _ int64, args []string) any {
	for _, channel := range args[1:] {
		c.subscribeLocked(channel)
		c.answerLocked([]any{"subscribe", channel, len(c.channels)})
	}
	return answered
}

func unsubscribe(c *conn, _ int64, args []string) any {
	channels := args[1:]
	if len(channels) == 0 {
		for channel := range c.channels {
			channels = append(channels, channel)
		}
		slices.Sort(channels)
	}
	for _, channel := range channels {
		c.unsubscribeLocked(channel)
		c.answerLocked([]any{"unsubscribe", channel, len(c.channels)})
	}
	if len(channels) == 0 {
		return []any{"unsubscribe", nil, 0}
	}
	return answered
}
