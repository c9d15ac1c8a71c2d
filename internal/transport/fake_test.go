package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/heartbeat"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// A fake is a server in this process. Clients connect through net.Pipe, so a write ends only when the other side has
// read it. In a synctest bubble all timeouts are exact.
type fake struct {
	mu    sync.Mutex
	runID string
	extra string // additional lines of INFO
	info  string // the reply to INFO if not ""
	// answer returns the reply to a script call, in RESP; "" closes the connection.
	answer func(cmd []string) string
	// mute is not nil while the server hangs. It is closed when the server resumes.
	mute chan struct{}
	// hangOn is a key. The server begins to hang at the first call with this key.
	hangOn   string
	log      [][]string // script calls, in the order in which they were read
	dials    int
	conns    []net.Conn
	served   map[*fakeConn]bool
	unserved bool // the server accepts connections but never reads from them
	stopped  bool // the server refuses connections
	// lateOn is a command. The next reply to it is computed immediately, but written only after the duration late.
	lateOn string
	late   time.Duration
	delay  time.Duration // before each reply
	// on handles a command instead of the server, unless it returns false. If it returns an error, the connection is
	// closed.
	on   func(w io.Writer, cmd []string) (handled bool, err error)
	seen map[string]int // by command: how often it was received since the last call of counted
	subs int            // number of connections with a subscription command since the last call of subscribers
}

// A fakeConn is the server's side of one connection.
type fakeConn struct {
	net.Conn
	writeMu  sync.Mutex
	channels map[string]bool // guarded by fake.mu
	listens  bool            // the client has sent a subscription command; guarded by fake.mu
}

func (c *fakeConn) say(text string) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	_, err := io.WriteString(c, text)
	return err
}

func newFake(runID string) *fake {
	return &fake{runID: runID, served: map[*fakeConn]bool{}, answer: func([]string) string { return ":1\r\n" },
		seen: map[string]int{}}
}

func (f *fake) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil, errors.New("connection refused")
	}
	f.dials++
	f.conns = append(f.conns, client)
	if !f.unserved {
		c := &fakeConn{Conn: server, channels: map[string]bool{}}
		f.served[c] = true
		go f.serve(c)
	}
	return client, nil
}

// hang makes the server stop reading until resume is called.
func (f *fake) hang() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mute = make(chan struct{})
}

func (f *fake) resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mute != nil {
		close(f.mute)
		f.mute = nil
	}
}

// cut closes the newest connection.
func (f *fake) cut() {
	f.mu.Lock()
	c := f.conns[len(f.conns)-1]
	f.mu.Unlock()
	_ = c.Close()
}

// cutAll closes every connection. If stop is set, the server also refuses new connections.
func (f *fake) cutAll(stop bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = stop
	for c := range f.served {
		_ = c.Close()
	}
}

// connections returns the number of open connections.
func (f *fake) connections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.served)
}

// publish sends a message to every connection that has subscribed to the channel, unless the server hangs.
func (f *fake) publish(channel, payload string) {
	f.mu.Lock()
	var to []*fakeConn
	for c := range f.served {
		if c.channels[channel] && f.mute == nil {
			to = append(to, c)
		}
	}
	f.mu.Unlock()
	for _, c := range to {
		_ = c.say("*3\r\n" + bulk("message") + bulk(channel) + bulk(payload)) // the connection may have ended
	}
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) calls() [][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([][]string(nil), f.log...)
}

func (f *fake) dialled() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dials
}

// counted returns how often the command was received since the previous call of counted.
func (f *fake) counted(cmd string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.seen[cmd] = 0 }()
	return f.seen[cmd]
}

// subscribers returns the number of connections that sent a subscription command since the previous call of
// subscribers.
func (f *fake) subscribers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.subs = 0 }()
	return f.subs
}

func (f *fake) serve(c *fakeConn) {
	defer func() {
		_ = c.Close()
		f.set(func() { delete(f.served, c) })
	}()
	r := bufio.NewReader(c)
	for {
		cmd, err := readCommand(r)
		if err != nil {
			return
		}
		f.mu.Lock()
		if len(cmd) > 3 && cmd[3] == f.hangOn {
			f.mute = make(chan struct{})
		}
		mute := f.mute
		f.mu.Unlock()
		if mute != nil {
			<-mute
		}
		if handled, err := f.handle(c, cmd); err != nil {
			return
		} else if handled {
			continue
		}
		reply := f.subscribe(c, cmd)
		if reply == "" {
			reply = f.reply(cmd)
		}
		if reply == "" {
			return
		}
		f.mu.Lock()
		wait := f.delay
		if f.lateOn == cmd[0] {
			f.lateOn, wait = "", f.late
		}
		f.mu.Unlock()
		if wait > 0 {
			<-time.After(wait)
		}
		if err := c.say(reply); err != nil {
			return
		}
	}
}

// handle counts a command, and then calls f.on.
func (f *fake) handle(c *fakeConn, cmd []string) (handled bool, err error) {
	f.mu.Lock()
	f.seen[cmd[0]]++
	if !c.listens && ofSubscription(cmd) {
		c.listens = true
		f.subs++
	}
	on := f.on
	f.mu.Unlock()
	if on == nil {
		return false, nil
	}
	return on(c, cmd)
}

func ofSubscription(cmd []string) bool {
	return slices.Contains([]string{"SUBSCRIBE", "UNSUBSCRIBE", "PING"}, cmd[0])
}

// subscribe returns the reply to a subscription command, or "" for other commands.
func (f *fake) subscribe(c *fakeConn, cmd []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch cmd[0] {
	case "SUBSCRIBE", "UNSUBSCRIBE":
		for _, channel := range cmd[1:] {
			c.channels[channel] = cmd[0] == "SUBSCRIBE"
		}
	case "PING":
	default:
		return ""
	}
	return polite(cmd)
}

func (f *fake) reply(cmd []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch cmd[0] {
	case "INFO":
		if f.info != "" {
			return f.info
		}
		return bulk(f.infoLocked())
	case "CONFIG":
		if cmd[2] == stoppingSettings {
			return "*4\r\n" + bulk("min-replicas-to-write") + bulk("1") + bulk("min-replicas-max-lag") + bulk("3")
		}
		return "+OK\r\n"
	case "SCRIPT":
		for _, s := range scripts.All {
			if s.Text == cmd[2] {
				return bulk(s.SHA)
			}
		}
		return "-ERR unknown script\r\n"
	case "EVALSHA", "EVAL":
		if cmd[1] == heartbeat.Script.SHA {
			return f.heartbeatLocked(cmd[3:])
		}
		f.log = append(f.log, cmd)
		return f.answer(cmd)
	default:
		return "+OK\r\n"
	}
}

func (f *fake) infoLocked() string {
	return fmt.Sprintf("redis_version:7.0.15\r\nrun_id:%s\r\nmaster_replid2:%s\r\nsecond_repl_offset:-1\r\n"+
		"role:master\r\nmaxmemory_policy:noeviction\r\nserver_time_usec:1700000000000000\r\n%s", f.runID, noID, f.extra)
}

// heartbeatLocked returns the reply to the script of a heartbeat, or the error reply that is set for INFO.
func (f *fake) heartbeatLocked(args []string) string {
	if strings.HasPrefix(f.info, "-") {
		return f.info
	}
	info := f.infoLocked()
	if f.info != "" {
		_, info, _ = strings.Cut(f.info, "\r\n")
	}
	env := reference.Env{InfoFunc: func() string { return info }}
	reply, _ := new(reference.State).Eval(0, env, heartbeat.Script, nil, args).(string)
	return bulk(reply)
}

// polite returns the reply to a subscription command as a real server sends it.
func polite(cmd []string) string {
	if cmd[0] == "PING" {
		return "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
	}
	var b strings.Builder
	for i, channel := range cmd[1:] {
		fmt.Fprintf(&b, "*3\r\n%s%s:%d\r\n", bulk(strings.ToLower(cmd[0])), bulk(channel), i)
	}
	return b.String()
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readLength(r, '*')
	if err != nil {
		return nil, err
	}
	cmd := make([]string, n)
	for i := range cmd {
		size, err := readLength(r, '$')
		if err != nil {
			return nil, err
		}
		buf := make([]byte, size+2)
		if _, err := io.ReadFull(r, buf); err != nil {
			return nil, err
		}
		cmd[i] = string(buf[:size])
	}
	return cmd, nil
}

func readLength(r *bufio.Reader, prefix byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != prefix {
		return 0, fmt.Errorf("unexpected %q", line)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
