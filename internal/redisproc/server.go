package redisproc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// startBound is the maximum time until a server answers after its start, stopBound the maximum time until it stops.
const (
	startBound = 20 * time.Second
	stopBound  = 3 * time.Second
)

// Config configures a server. The zero Config is a server without persistence, on a free port.
type Config struct {
	// Args are appended to the package's own arguments and override them. Example: "--maxmemory", "10mb".
	Args []string
	// Env holds further variables for the environment of the server, as "NAME=value".
	Env []string
	// Dir is the working directory; it must exist, and is not removed. The default is a new temporary one, which Stop
	// removes.
	Dir string
	// File has the lines of a configuration file, which the server may rewrite; Args override them. Without lines there is
	// no file. Sentinel makes the server a sentinel, which needs a file.
	File     []string
	Sentinel bool
	// Host is the address on which the server listens, by default 127.0.0.1. Port is the TCP port; 0 means a free port.
	Host string
	Port int
	// Run holds the words before the program and its arguments, for example "ip", "netns", "exec", "name". The command
	// must become the program, since signals are sent to its process.
	Run []string
	// Name is used in errors and in the name of the temporary directory. The default is "redis".
	Name string
}

// A Server is one server, whose process is replaced by Kill and Restart.
type Server struct {
	path, version string
	cfg           Config
	dir, socket   string

	mu   sync.Mutex // held during every change of state
	port int
	proc *process // nil before the first start and after Stop
	gone bool
}

// Start starts a server and waits until it answers, until ctx ends, or for 20 s. After an error neither a process nor a
// directory is left.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	v, err := version(ctx, path)
	if err != nil {
		return nil, err
	}
	if cfg.Name == "" {
		cfg.Name = "redis"
	}
	if cfg.Host == "" {
		cfg.Host = "127.0.0.1"
	}
	s := &Server{path: path, version: v, cfg: cfg, dir: cfg.Dir, port: cfg.Port}
	own, err := tempDir(cfg.Name)
	if err != nil {
		return nil, fmt.Errorf("redisproc: %s: %w", cfg.Name, err)
	}
	if s.dir == "" {
		s.dir = own
	}
	s.socket = filepath.Join(own, "s")
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(cfg.File) > 0 {
		err = os.WriteFile(s.filePath(), []byte(strings.Join(cfg.File, "\n")+"\n"), 0o600)
	}
	if err == nil {
		err = s.launchLocked(ctx)
	}
	if err != nil {
		_ = os.RemoveAll(own)
		return nil, err
	}
	return s, nil
}

// StartN starts n servers concurrently. After an error no server is left.
func StartN(ctx context.Context, n int, cfg Config) ([]*Server, error) {
	if cfg.Port != 0 && n > 1 {
		return nil, fmt.Errorf("redisproc: %d servers cannot share port %d", n, cfg.Port)
	}
	servers, errs := make([]*Server, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			c := cfg
			if c.Name == "" {
				c.Name = "redis"
			}
			c.Name += "-" + strconv.Itoa(i+1)
			servers[i], errs[i] = Start(ctx, c)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, s := range servers {
			if s != nil {
				err = errors.Join(err, s.Stop())
			}
		}
		return nil, err
	}
	return servers, nil
}

// tempDir makes a directory with a short name, because the path of a socket in it is limited to about a hundred bytes.
func tempDir(name string) (string, error) {
	base := os.TempDir()
	if len(base)+len(name) > 60 {
		base = "/tmp"
	}
	name = strings.Map(func(r rune) rune {
		if r == os.PathSeparator || r == '*' {
			return '-'
		}
		return r
	}, name)
	if len(name) > 24 {
		name = name[:24]
	}
	return os.MkdirTemp(base, name+"-*")
}

// Addr returns the address for TCP, such as "127.0.0.1:6379". It does not change on restarts.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return net.JoinHostPort(s.cfg.Host, strconv.Itoa(s.port))
}

// URL returns "redis://" and the address.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Unix returns the path of the server's Unix socket.
func (s *Server) Unix() string { return s.socket }

// Dir returns the server's working directory.
func (s *Server) Dir() string { return s.dir }

// Name returns the name that errors use.
func (s *Server) Name() string { return s.cfg.Name }

// Version returns the server's version, such as "7.0.15".
func (s *Server) Version() string { return s.version }

// PID returns the process ID, or 0 if no process runs.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.proc.running() {
		return 0
	}
	return s.proc.pid
}

// Output returns the last few kilobytes of the server's log.
func (s *Server) Output() string { return tail(s.logPath()) }

func (s *Server) logPath() string  { return filepath.Join(filepath.Dir(s.socket), "log") }
func (s *Server) filePath() string { return filepath.Join(filepath.Dir(s.socket), "conf") }

// Stop ends the process, first with SIGTERM and after 3 s with SIGKILL, waits for it, and removes its temporary
// directory. A second Stop does nothing and returns nil.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil
	}
	s.gone = true
	s.proc.terminate(stopBound)
	if err := os.RemoveAll(filepath.Dir(s.socket)); err != nil {
		return fmt.Errorf("redisproc: %s: %w", s.cfg.Name, err)
	}
	return nil
}

// Kill ends the process with SIGKILL, and waits until it has ended. The address is kept for Restart. If no process
// runs, Kill does nothing.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc.kill()
	return nil
}

// Restart kills the process, if one runs, starts a new one on the same port and waits until it answers, until ctx
// ends, or for 20 s. The new server is empty unless Args enables persistence. After an error no process runs.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return fmt.Errorf("redisproc: cannot restart %s: it was stopped by Stop", s.cfg.Name)
	}
	s.proc.kill()
	return s.launchLocked(ctx)
}

// Pause stops the process with SIGSTOP. The process then keeps its connections but does not answer.
func (s *Server) Pause() error { return s.signal("pause", pauseSignal) }

// Resume continues a paused process, which then reads all pending input.
func (s *Server) Resume() error { return s.signal("resume", resumeSignal) }

func (s *Server) signal(what string, sig os.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.proc.running() {
		return fmt.Errorf("redisproc: cannot %s %s: its process is not running", what, s.cfg.Name)
	}
	if err := s.proc.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("redisproc: cannot %s %s: %w", what, s.cfg.Name, err)
	}
	return nil
}

// launchLocked starts a process and waits for its first answer. If another process uses the port, launchLocked tries
// again until ctx ends: on the first start with another port, unless Config.Port is set, and on a restart with the
// same port.
func (s *Server) launchLocked(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	for {
		port := s.port
		if port == 0 {
			var err error
			if port, err = FreePort(); err != nil {
				return fmt.Errorf("redisproc: %s: %w", s.cfg.Name, err)
			}
		}
		err := s.tryLocked(ctx, port)
		if err == nil {
			s.port = port
			return nil
		}
		if !strings.Contains(s.Output(), "in use") || (s.cfg.Port != 0 && s.port == s.cfg.Port && s.proc == nil) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *Server) tryLocked(ctx context.Context, port int) error {
	command := append(slices.Clone(s.cfg.Run), s.path)
	if len(s.cfg.File) > 0 {
		command = append(command, s.filePath())
	}
	if s.cfg.Sentinel {
		command = append(command, "--sentinel")
	}
	command = append(command, "--port", strconv.Itoa(port), "--bind", s.cfg.Host, "--unixsocket", s.socket, "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", "")
	p, err := launch(append(command, s.cfg.Args...), s.cfg.Env, s.logPath())
	if err != nil {
		return fmt.Errorf("redisproc: %s: %w", s.cfg.Name, err)
	}
	if err := ready(ctx, p, s.socket); err != nil {
		p.kill()
		return fmt.Errorf("redisproc: %s: %w; its output ends with:\n%s", s.cfg.Name, err, s.Output())
	}
	s.proc = p
	return nil
}
