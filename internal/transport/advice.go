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

// deniedCommand matches the reply to a script that ran a command without the right to it. It finds the user, if the
// reply names the user, and the command.
var deniedCommand = regexp.MustCompile(
	`(?:[Uu]ser (\S+) has|user has) no permissions to run the '([a-zA-Z|]+)' command`)

// deniedLine matches that reply of Redis before 7.2, which contains the line number in the script but not the
// command. commandCall finds the commands in that line.
var (
	deniedLine  = regexp.MustCompile(`can't run this command.*script: ([0-9a-f]{40}), on @user_script:([0-9]+)`)
	commandCall = regexp.MustCompile(`call\('([A-Z]+)'`)
)

// denied returns the user, if text names one, and the commands in the denied line of a script: the user lacks the
// right to at least one of them.
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

// advice returns the topic of the failure and the advice for it, which is "" if the cause suggests none. Error texts
// and findings of [Transport.Check] contain the same advice. user is the name that the client logs in with.
func (e *Error) advice(user string) (about, do string) {
	op, err := e.Op, e.Err
	text := err.Error()
	has := func(part string) bool { return strings.Contains(text, part) }
	connecting := false
	switch op {
	case "connect", "credentials", "auth", "select", "info", "script load", "config get", "client":
		connecting = true
	}
	var reply redis.Error
	if who, commands := denied(text, e.scripts); commands != nil && !connecting {
		user = cmp.Or(who, user)
		return "rights", fmt.Sprintf("grant the user %s the right to run %s: `ACL SETUSER %s +%s`", user,
			strings.Join(commands, ", "), user, strings.Join(commands, " +"))
	}
	switch {
	case !connecting && !errors.As(err, &reply):
		return "connection", ""
	case errors.Is(err, ErrRefused) && !has("may not run INFO"):
		return "connection", "" // the error has its own advice
	case op == "info" && (has("may not run INFO") || fault.IsCode(err, "NOPERM")):
		return "rights", fmt.Sprintf(stepInfo, user)
	case op == "credentials":
		return "rights", stepSecret
	case op == "select" && fault.IsCode(err, "NOPERM"):
		return "rights", fmt.Sprintf(stepRights, user, "+select")
	case fault.IsCode(err, "NOAUTH"):
		return "rights", stepPassword
	case fault.IsCode(err, "WRONGPASS"), op == "auth" && reply != "":
		return "rights", stepLogin
	case fault.IsCode(err, "NOPERM"):
		return "rights", "grant its user the rights that redlock check lists"
	case has("max number of clients"):
		return "connection", stepClients
	case fault.IsCode(err, "DENIED"):
		return "connection", stepProtected
	case fault.IsCode(err, "BUSY"):
		return "connection", stepBusy
	case has("unknown command") && has("INFO"):
		return "connection", stepProxy
	case has("first record does not look like a TLS handshake"),
		has("TLS:") && (errors.Is(err, ErrTimeout) || errors.Is(err, io.EOF)):
		return "connection", stepPlain
	case has("certificate is valid for"), has("certificate is not valid for"), has("cannot validate certificate for"):
		return "connection", stepHost
	case has("certificate"):
		return "connection", stepAuthority
	case has("CLUSTERDOWN"):
		return "connection", stepMessage
	case has("too many colons"):
		return "connection", "write an IPv6 address in brackets: redis://[::1]:6379"
	case op == "select":
		return "rights", stepDatabase
	case op != "connect" && (errors.Is(err, io.EOF) || has("the server closed it") || has("connection reset")):
		return "connection", stepClosed
	case connecting && errors.Is(err, ErrTimeout):
		return "connection", stepHangs
	}
	return "connection", ""
}
