package memory

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

const (
	errArgs    reference.Error = "ERR wrong number of arguments"
	errInteger reference.Error = "ERR value is not an integer or out of range"
	errSyntax  reference.Error = "ERR syntax error"
	NoScript   reference.Error = "NOSCRIPT No matching script. Please use EVAL."
	errForeign reference.Error = "ERR the in-memory master runs only the scripts of redlock"
	errReplica reference.Error = "READONLY You can't write against a read only replica."
	errNoAuth  reference.Error = "ERR AUTH <password> called without any password configured for the default user. " +
		"Are you sure your configuration is correct?"
)

// A command describes a supported command. run executes the command; args[0] is the name of the command. run returns
// the reply, or answered if run has already sent all replies.
type command struct {
	least int // minimum length of args, including the name
	run   func(s *Server, c *Client, args []string) any
}

type answeredType struct{}

var answered any = answeredType{}

// commands are the supported commands other than scripts.
var commands = map[string]command{
	"PING":        {1, ping},
	"ECHO":        {2, func(_ *Server, _ *Client, args []string) any { return args[1] }},
	"AUTH":        {2, func(*Server, *Client, []string) any { return errNoAuth }},
	"SELECT":      {2, selectDB},
	"CLIENT":      {2, client},
	"QUIT":        {1, func(*Server, *Client, []string) any { return status("OK") }},
	"INFO":        {1, func(s *Server, _ *Client, args []string) any { return s.info(args[1:]) }},
	"TIME":        {1, clockTime},
	"CONFIG":      {3, config},
	"SCRIPT":      {2, script},
	"GET":         {2, get},
	"SET":         {3, set},
	"DEL":         {2, del},
	"EXISTS":      {2, exists},
	"PTTL":        {2, func(s *Server, _ *Client, args []string) any { return s.State.TTL(s.Now(), args[1]) }},
	"HGETALL":     {2, hgetall},
	"DBSIZE":      {1, func(s *Server, _ *Client, _ []string) any { return len(s.State.Keys(s.Now())) }},
	"FLUSHALL":    {1, flush},
	"FLUSHDB":     {1, flush},
	"PUBLISH":     {3, func(s *Server, _ *Client, args []string) any { return s.Publish(args[1], args[2]) }},
	"SUBSCRIBE":   {2, subscribe},
	"UNSUBSCRIBE": {1, unsubscribe},
}

// Execute executes one command other than EVAL and EVALSHA, and sends its replies to the client. It reports whether the
// command is known and allowed.
func (s *Server) Execute(c *Client, args []string) bool {
	name := strings.ToUpper(args[0])
	cmd, known := commands[name]
	refusal := s.Refused[name]
	if refusal == "" && len(args) > 1 {
		refusal = s.Refused[name+" "+strings.ToUpper(args[1])]
	}
	switch {
	case refusal != "":
		c.Reply(reference.Error(refusal))
	case !known && inScripts(name):
		c.Reply(errForeign)
	case !known:
		c.Reply(reference.Error(fmt.Sprintf("ERR unknown command '%.128s', with args beginning with: ", args[0])))
	case len(args) < cmd.least:
		c.Reply(errArgs + reference.Error(" for '"+strings.ToLower(name)+"' command"))
	case len(c.channels) > 0 && !slices.Contains([]string{"SUBSCRIBE", "UNSUBSCRIBE", "PING", "QUIT"}, name):
		c.Reply(reference.Error("ERR Can't execute '" + strings.ToLower(name) + "': only (P|S)SUBSCRIBE / " +
			"(P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"))
	default:
		if reply := cmd.run(s, c, args); reply != answered {
			c.Reply(reply)
		}
		return true
	}
	return false
}

// inScripts reports whether scripts run the command. A check of the rights must not find it unknown.
func inScripts(command string) bool {
	return slices.ContainsFunc(scripts.Rights, func(r scripts.Right) bool { return strings.EqualFold(r.Rule, command) })
}

// IsScript reports whether command is EVAL or EVALSHA; see Find.
func IsScript(command string) bool {
	return strings.EqualFold(command, "EVALSHA") || strings.EqualFold(command, "EVAL")
}

// Find parses the arguments of EVALSHA or EVAL. It returns the script, its keys and its other arguments, or the error
// reply. For EVAL, Find also caches the script.
func (s *Server) Find(args []string) (script *frame.Script, keys, argv []string, failed reference.Error) {
	if len(args) < 3 {
		return nil, nil, nil, errArgs + reference.Error(" for '"+strings.ToLower(args[0])+"' command")
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
	if strings.EqualFold(args[0], "EVALSHA") {
		if script = s.Loaded[strings.ToLower(args[1])]; script == nil {
			return nil, nil, nil, NoScript
		}
	} else if script = s.load(args[1]); script == nil {
		return nil, nil, nil, errForeign
	}
	return script, args[3 : 3+n], args[3+n:], ""
}

// load caches and returns the script with this text; it returns nil if the text is unknown.
func (s *Server) load(text string) *frame.Script {
	for _, one := range scripts.All {
		if one.Text == text {
			s.Loaded[one.SHA] = one
			return one
		}
	}
	return nil
}

func ping(s *Server, c *Client, args []string) any {
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

// selectDB accepts the sixteen databases of a default configuration. Here they all have the same keys.
func selectDB(_ *Server, _ *Client, args []string) any {
	if n, err := strconv.Atoi(args[1]); err != nil {
		return errInteger
	} else if n < 0 || n > 15 {
		return reference.Error("ERR DB index is out of range")
	}
	return status("OK")
}

func client(_ *Server, _ *Client, args []string) any {
	switch strings.ToUpper(args[1]) {
	case "SETNAME", "SETINFO", "NO-EVICT", "NO-TOUCH":
		return status("OK")
	default:
		return reference.Error("ERR unknown subcommand '" + args[1] + "'. Try CLIENT HELP.")
	}
}

// config supports CONFIG GET.
func config(s *Server, c *Client, args []string) any {
	if strings.ToUpper(args[1]) != "GET" {
		return reference.Error("ERR unknown subcommand '" + args[1] + "'. Try CONFIG HELP.")
	}
	reply := []any{}
	for _, name := range slices.Sorted(maps.Keys(s.config)) {
		if slices.ContainsFunc(args[2:], func(pattern string) bool {
			is, _ := path.Match(strings.ToLower(pattern), name) // names contain no slash
			return is
		}) {
			reply = append(reply, name, s.config[name])
		}
	}
	return reply
}

func clockTime(s *Server, _ *Client, _ []string) any {
	now := s.Now()
	return []any{strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10)}
}

func script(s *Server, c *Client, args []string) any {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "LOAD" && len(args) == 3:
		one := s.load(args[2])
		if one == nil {
			return errForeign
		}
		return one.SHA
	case sub == "EXISTS" && len(args) > 2:
		var reply []any
		for _, sha := range args[2:] {
			n := int64(0)
			if s.Loaded[strings.ToLower(sha)] != nil {
				n = 1
			}
			reply = append(reply, n)
		}
		return reply
	case sub == "FLUSH":
		clear(s.Loaded)
		return status("OK")
	default:
		return reference.Error("ERR unknown subcommand or wrong number of arguments for '" + args[1] + "'. Try SCRIPT HELP.")
	}
}

func get(s *Server, _ *Client, args []string) any {
	now := s.Now()
	v := s.State.Look(now, args[1])
	switch v.Type {
	case reference.None:
		return nil
	case reference.String:
		return v.Text
	default:
		return reference.WrongType
	}
}

// set supports XX, PX and EX.
func set(s *Server, _ *Client, args []string) any {
	now := s.Now()
	ttl, existing := int64(0), false
	for more := args[3:]; len(more) > 0; more = more[1:] {
		unit := int64(1000)
		switch strings.ToUpper(more[0]) {
		case "XX":
			existing = true
			continue
		case "PX":
			unit = 1
		case "EX":
		default:
			return errSyntax
		}
		if more = more[1:]; len(more) == 0 {
			return errSyntax
		}
		n, err := strconv.ParseInt(more[0], 10, 64)
		if err != nil {
			return errInteger
		}
		if ttl = n * unit; ttl <= 0 {
			return reference.Error("ERR invalid expire time in 'set' command")
		}
	}
	if existing && s.State.Look(now, args[1]).Type == reference.None {
		return nil
	}
	s.State.Set(now, args[1], args[2], ttl)
	return status("OK")
}

func del(s *Server, _ *Client, args []string) any {
	now := s.Now()
	n := int64(0)
	for _, key := range args[1:] {
		if s.State.Delete(now, key) {
			n++
		}
	}
	return n
}

func exists(s *Server, _ *Client, args []string) any {
	now := s.Now()
	n := int64(0)
	for _, key := range args[1:] {
		if s.State.Look(now, key).Type != reference.None {
			n++
		}
	}
	return n
}

func hgetall(s *Server, _ *Client, args []string) any {
	now := s.Now()
	v := s.State.Look(now, args[1])
	if v.Type != reference.None && v.Type != reference.Hash {
		return reference.WrongType
	}
	reply := []any{}
	for _, f := range v.Fields {
		reply = append(reply, f.Name, f.Value)
	}
	return reply
}

func flush(s *Server, c *Client, _ []string) any {
	s.State.Flush()
	return status("OK")
}

func subscribe(s *Server, c *Client, args []string) any {
	for _, channel := range args[1:] {
		s.subscribe(c, channel)
		c.Reply([]any{"subscribe", channel, len(c.channels)})
	}
	return answered
}

func unsubscribe(s *Server, c *Client, args []string) any {
	channels := args[1:]
	if len(channels) == 0 {
		channels = slices.Sorted(slices.Values(c.channels))
	}
	for _, channel := range channels {
		s.unsubscribe(c, channel)
		c.Reply([]any{"unsubscribe", channel, len(c.channels)})
	}
	if len(channels) == 0 {
		return []any{"unsubscribe", nil, 0}
	}
	return answered
}
