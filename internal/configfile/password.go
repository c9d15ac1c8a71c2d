package configfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

const (
	// maxPassword is the maximum length of a password in bytes. Tokens of identity providers may be a few thousand bytes
	// long.
	maxPassword = 64 << 10
	// commandDialTimeout is the dial timeout if each dial runs a command, because the commands of cloud providers take
	// seconds.
	commandDialTimeout = 5 * time.Second
)

// checkPassword returns an error if c has more than one source of a password.
func (c *Config) checkPassword() error {
	given := 0
	for _, is := range []bool{c.Password != "", c.PasswordFile != "", c.PasswordCommand != nil} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return errors.New("password, passwordFile and passwordCommand exclude each other: use one of them")
	case c.SentinelPassword != "" && c.SentinelPasswordFile != "":
		return errors.New("sentinelPassword and sentinelPasswordFile exclude each other: use one of them")
	case c.PasswordCommand != nil && (len(c.PasswordCommand) == 0 || c.PasswordCommand[0] == ""):
		return errors.New("passwordCommand names no program")
	}
	return nil
}

// credentials returns the options of the pool that contain the credentials.
func (c *Config) credentials() []pool.Option {
	read := func(context.Context) (string, error) { return readPassword("passwordFile", c.PasswordFile) }
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

// sentinelCredentials returns the options of the pool that contain the credentials of the sentinels.
func (c *Config) sentinelCredentials() []pool.Option {
	switch {
	case c.SentinelPasswordFile != "":
		return []pool.Option{transport.WithSentinelCredentialsProvider(
			func(context.Context) (user, password string, err error) {
				password, err = readPassword("sentinelPasswordFile", c.SentinelPasswordFile)
				return c.SentinelUser, password, err
			})}
	case c.SentinelUser != "" || c.SentinelPassword != "":
		return []pool.Option{pool.WithSentinelCredentials(c.SentinelUser, c.SentinelPassword)}
	}
	return nil
}

// readPassword reads the file with a password. Its errors name the file, and do not contain its content.
func readPassword(field, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPassword+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return onePassword(field+" "+path, string(text))
}

// runPasswordCommand runs the command that writes the password. Its errors name the program, and contain neither its
// arguments nor its output.
func (c *Config) runPasswordCommand(ctx context.Context) (string, error) {
	name := "passwordCommand " + c.PasswordCommand[0]
	var out limitedOutput
	cmd := exec.CommandContext(ctx, c.PasswordCommand[0], c.PasswordCommand[1:]...)
	cmd.Stdout = &out
	cmd.WaitDelay = time.Second // a child of the command may keep the output open
	run := c.Run
	if run == nil {
		run = (*exec.Cmd).Run
	}
	err := run(cmd)
	switch {
	case out.full:
		return "", fmt.Errorf("%s: more than %d bytes", name, maxPassword)
	case err != nil:
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return onePassword(name, out.String())
}

// onePassword returns the password in text, which is the content of a file, or the output of a command.
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

// limitedOutput stores the output of a command. Write fails if the output is too long for a password.
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
