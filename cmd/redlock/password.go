package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/pool"
)

const (
	// maxPassword is the maximum length of a password in bytes. Tokens of identity providers have a few thousand.
	maxPassword = 64 << 10
	// commandDialTimeout is the dial timeout if each dial runs a command: those of cloud providers take seconds.
	commandDialTimeout = 5 * time.Second
)

// checkPassword checks that the file, at path, has at most one source of the password.
func (c *deploymentConfig) checkPassword(path string) error {
	given := 0
	for _, is := range []bool{c.Password != "", c.PasswordFile != "", c.PasswordCommand != nil} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return fmt.Errorf("%s: password, passwordFile and passwordCommand exclude each other: give one of them", path)
	case c.PasswordCommand != nil && (len(c.PasswordCommand) == 0 || c.PasswordCommand[0] == ""):
		return fmt.Errorf("%s: passwordCommand names no program", path)
	}
	return nil
}

// credentials returns the options of the pool that log in.
func (c *deploymentConfig) credentials() []pool.Option {
	read := c.readPassword
	switch {
	case c.PasswordCommand != nil:
		read = c.runPasswordCommand
	case c.PasswordFile != "":
	case c.User != "" || c.Password != "":
		return []pool.Option{pool.WithCredentials(c.User, c.Password)}
	default:
		return nil
	}
	opts := []pool.Option{pool.WithCredentialsProvider(
		func(ctx context.Context) (user, password string, err error) {
			password, err = read(ctx)
			return c.User, password, err
		})}
	if c.PasswordCommand != nil {
		opts = append(opts, pool.WithDialTimeout(commandDialTimeout))
	}
	return opts
}

// readPassword reads the file with the password. Its errors name the file, and do not contain its content.
func (c *deploymentConfig) readPassword(context.Context) (string, error) {
	f, err := os.Open(c.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("passwordFile: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPassword+1))
	if err != nil {
		return "", fmt.Errorf("passwordFile: %w", err)
	}
	return onePassword("passwordFile "+c.PasswordFile, string(text))
}

// runPasswordCommand runs the command that writes the password. Its errors name the program, and contain neither its
// arguments nor its output.
func (c *deploymentConfig) runPasswordCommand(ctx context.Context) (string, error) {
	name := "passwordCommand " + c.PasswordCommand[0]
	var out limitedOutput
	cmd := exec.CommandContext(ctx, c.PasswordCommand[0], c.PasswordCommand[1:]...)
	cmd.Stdout = &out
	cmd.WaitDelay = time.Second // a child of the command may keep its output open
	err := helpers.run(cmd)
	switch {
	case out.full:
		return "", fmt.Errorf("%s: more than %d bytes", name, maxPassword)
	case err != nil:
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return onePassword(name, out.String())
}

// onePassword returns the password in text, the content of a file or the output of a command.
func onePassword(source, text string) (string, error) {
	password := strings.TrimRight(text, "\r\n")
	switch {
	case len(text) > maxPassword:
		return "", fmt.Errorf("%s: more than %d bytes", source, maxPassword)
	case password == "":
		return "", fmt.Errorf("%s: empty", source)
	case strings.ContainsAny(password, "\r\n"):
		return "", fmt.Errorf("%s: more than one line", source)
	}
	return password, nil
}

// limitedOutput stores the output of a command, and fails if that is too long for a password.
type limitedOutput struct {
	strings.Builder
	full bool
}

func (l *limitedOutput) Write(p []byte) (int, error) {
	if l.full = l.full || l.Len()+len(p) > maxPassword; l.full {
		return 0, io.ErrShortWrite // the command then gets SIGPIPE
	}
	return l.Builder.Write(p)
}

// helpers are the running password commands. They are children of this process and do not belong to the command that
// "run" runs: they must be neither killed with it nor reaped with its orphans.
var helpers helperSet

type helperSet struct {
	pids    sync.Map   // process ids as int
	startMu sync.Mutex // held until a new process is listed
}

// run starts cmd and waits for its end.
func (s *helperSet) run(cmd *exec.Cmd) error {
	s.startMu.Lock()
	err := cmd.Start()
	if err == nil {
		defer s.pids.Delete(cmd.Process.Pid)
		s.pids.Store(cmd.Process.Pid, nil)
	}
	s.startMu.Unlock()
	if err != nil {
		return err
	}
	return cmd.Wait()
}

// has reports whether a process is a running password command. One that has just been started may be missing, unless
// startMu is held.
func (s *helperSet) has(pid int) bool {
	_, ok := s.pids.Load(pid)
	return ok
}
