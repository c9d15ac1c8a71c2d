package transport

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// deniedCommand matches the reply to a script that ran a command without the right to it. Its submatches are the user,
// if the reply contains one, and the command.
var deniedCommand = regexp.MustCompile(
	`(?:[Uu]ser (\S+) has|user has) no permissions to run the '([a-zA-Z|]+)' command`)

// deniedLine matches the same reply of a Redis before 7.2, which contains the SHA-1 of the script and the number of the
// line but not the command. commandCall finds the commands in a line of a script.
var (
	deniedLine  = regexp.MustCompile(`can't run this command.*script: ([0-9a-f]{40}), on @user_script:([0-9]+)`)
	commandCall = regexp.MustCompile(`call\('([A-Z]+)'`)
)

// denied returns the user, if text contains one, and the commands that may have been denied: the command in text, or
// all commands in the line of the script that failed.
func denied(text string, scripts []*frame.Script) (user string, commands []string) {
	if m := deniedCommand.FindStringSubmatch(text); m != nil {
		return m[1], []string{strings.ToLower(m[2])}
	}
	m := deniedLine.FindStringSubmatch(text)
	if m == nil {
		return "", nil
	}
	for _, s := range scripts {
		lines := strings.Split(s.Text, "\n")
		if n, _ := strconv.Atoi(m[2]); s.SHA == m[1] && n > 0 && n <= len(lines) {
			for _, call := range commandCall.FindAllStringSubmatch(lines[n-1], -1) {
				commands = append(commands, strings.ToLower(call[1]))
			}
		}
	}
	return "", commands
}

// advice returns the topic of the failure and the step that fixes it, or "" if the cause suggests no step. Error texts
// and findings of [Transport.Check] contain the same step. user is the name that the client logs in with.
func (e *Error) advice(user string) (about, do string) {
	op, err := e.Op, e.Err
	text := err.Error()
	has := func(part string) bool { return strings.Contains(text, part) }
	replied := func(code string) bool { return fault.IsCode(err, code) }
	connecting := false
	switch op {
	case "connect", "credentials", "auth", "select", "info", "script load", "config get", "client":
		connecting = true
	}
	if who, commands := denied(text, e.scripts); commands != nil && !connecting {
		user = cmp.Or(who, user)
		return "rights", fmt.Sprintf("grant the user %s the right to run %s: `ACL SETUSER %s +%s`", user,
			strings.Join(commands, ", "), user, strings.Join(commands, " +"))
	}
	for _, known := range []struct {
		applies   bool
		about, do string
	}{
		{!connecting && !errors.As(err, new(redis.Error)), "connection", ""},
		{errors.Is(err, ErrRefused) && !has("may not run INFO"), "connection", ""}, // the error has its own advice
		{op == "info" && (has("may not run INFO") || replied("NOPERM")), "rights", fmt.Sprintf(stepInfo, user)},
		{op == "credentials", "rights", stepSecret},
		{op == "select" && replied("NOPERM"), "rights", fmt.Sprintf(stepRights, user, "+select")},
		{replied("NOAUTH"), "rights", stepPassword},
		{replied("WRONGPASS"), "rights", stepLogin},
		{replied("NOPERM"), "rights", "grant its user the rights that redlock check lists"},
		{has("max number of clients"), "connection", stepClients},
		{replied("DENIED"), "connection", stepProtected},
		{replied("BUSY"), "connection", stepBusy},
		{has("unknown command") && has("INFO"), "connection", stepProxy},
		{has("first record does not look like a TLS handshake"), "connection", stepPlain},
		{has("TLS:") && (errors.Is(err, ErrTimeout) || errors.Is(err, io.EOF)), "connection", stepPlain},
		{has("certificate is valid for") || has("certificate is not valid for"), "connection", stepHost},
		{has("cannot validate certificate for"), "connection", stepHost},
		{has("certificate"), "connection", stepAuthority},
		{has("CLUSTERDOWN"), "connection", stepMessage},
		{has("too many colons"), "connection", "write an IPv6 address in brackets: redis://[::1]:6379"},
		{op == "select", "rights", stepDatabase},
		{op != "connect" && (errors.Is(err, io.EOF) || has("the server closed it") || has("connection reset")),
			"connection", stepClosed},
		{connecting && errors.Is(err, ErrTimeout), "connection", stepHangs},
	} {
		if known.applies {
			return known.about, known.do
		}
	}
	return "connection", ""
}
