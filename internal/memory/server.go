package memory

import (
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// A Server contains the state of a master and executes commands on that state. It has neither a network nor a mutex;
// Master and the simulator provide these.
type Server struct {
	State   *reference.State
	Env     reference.Env // without its functions, which Eval sets
	ReplID  string
	Replica bool
	Refusal string // error reply of every script; "" for none
	// Refused maps commands other than scripts, such as "INFO" or "SCRIPT LOAD", to their error replies.
	Refused map[string]string
	Loaded  map[string]*frame.Script

	// Now is the server's clock, in microseconds.
	Now func() int64
	// Connections is the number of clients that INFO reports.
	Connections int

	started time.Time
	config  map[string]string // values for CONFIG GET
	subs    map[string][]*Client

	// file holds the data in the append-only file if the file lacks later writes; nil otherwise. Rewriting is whether it
	// is being completed.
	file      *reference.State
	rewriting bool
}

// A Client is the server's side of one connection.
type Client struct {
	Reply   func(reply any) // called with the replies of each command, in order
	Message func(reply any) // called with each message of a channel

	channels []string
}

// Channels returns the number of channels that the client has subscribed to.
func (c *Client) Channels() int { return len(c.channels) }

// NewServer returns an empty master that was just started.
func NewServer(now func() int64) *Server {
	return &Server{
		State: new(reference.State), Now: now, Loaded: map[string]*frame.Script{}, subs: map[string][]*Client{},
		Refused: map[string]string{},
		started: time.Now(),
		config: map[string]string{
			"repl-backlog-ttl": "3600", "appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no",
		},
	}
}

// SetAppendOnly switches the append-only file: see [Master.SetAppendOnly].
func (s *Server) SetAppendOnly(state string) {
	if s.file == nil && state != "yes" {
		s.file = s.State.Clone()
	}
	s.config["appendonly"], s.rewriting = "yes", state == "rewriting"
	switch state {
	case "no":
		s.config["appendonly"] = "no"
	case "yes":
		s.file = nil
	}
}

// Reload reads the append-only file, as a server does when it starts. The file is on and complete afterwards.
func (s *Server) Reload() {
	if s.file != nil {
		*s.State = *s.file
	}
	s.file, s.rewriting, s.config["appendonly"] = nil, false, "yes"
}

// Publish sends a message to the subscribers and returns their number.
func (s *Server) Publish(channel, payload string) int {
	for _, c := range s.subs[channel] {
		c.Message([]any{"message", channel, payload})
	}
	return len(s.subs[channel])
}

// Leave ends the subscriptions of a client.
func (s *Server) Leave(c *Client) {
	for len(c.channels) > 0 {
		s.unsubscribe(c, c.channels[0])
	}
}

func (s *Server) subscribe(c *Client, channel string) {
	if !slices.Contains(c.channels, channel) {
		c.channels = append(c.channels, channel)
		s.subs[channel] = append(s.subs[channel], c)
	}
}

func (s *Server) unsubscribe(c *Client, channel string) {
	if i := slices.Index(c.channels, channel); i >= 0 {
		c.channels = slices.Delete(slices.Clone(c.channels), i, i+1)
	}
	if i := slices.Index(s.subs[channel], c); i >= 0 {
		s.subs[channel] = slices.Delete(slices.Clone(s.subs[channel]), i, i+1)
	}
	if len(s.subs[channel]) == 0 {
		delete(s.subs, channel)
	}
}

// Eval executes a script.
func (s *Server) Eval(script *frame.Script, keys, argv []string) any {
	if s.Refusal != "" {
		return reference.Error(s.Refusal)
	}
	now, env := s.Now(), s.Env
	env.InfoFunc = func() string { return s.info(nil) }
	if !s.Replica {
		env.Publish = s.Publish
		return s.State.Eval(now, env, script, keys, argv)
	}
	// A replica stops a script at its first write. Deleting an expired key is not a write.
	s.State.Keys(now) // drop expired keys
	trial := s.State.Clone()
	env.Publish = func(channel, _ string) int { return len(s.subs[channel]) }
	reply := trial.Eval(now, env, script, keys, argv)
	if trial.String() != s.State.String() {
		return errReplica
	}
	return reply
}
