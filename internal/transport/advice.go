package transport

import (
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// deniedCommand finds the user, if it is named, and the command in the reply to a script that ran a command without
// the right to it.
var deniedCommand = regexp.MustCompile(
	`(?:[Uu]ser (\S+) has|user has) no permissions to run the '([a-zA-Z|]+)' command`)

// advice returns the topic of a failure of op and the advice for it, or "" if the cause suggests none. Errors of a
// program and findings of [Transport.Check] give the same advice. user is the name that the client logs in with.
func advice(op string, err error, user string) (about, do string) {
	text := err.Error()
	has := func(part string) bool { return strings.Contains(text, part) }
	connecting := false
	switch op {
	case "connect", "credentials", "auth", "select", "info", "script load", "config get", "client":
		connecting = true
	}
	var reply redis.Error
	if m := deniedCommand.FindStringSubmatch(text); m != nil && !connecting {
		if m[1] != "" {
			user = m[1]
		}
		return "rights", "grant the right to run " + m[2] + ": ACL SETUSER " + user + " +" + strings.ToLower(m[2])
	}
	switch {
	case !connecting && !errors.As(err, &reply):
		return "connection", ""
	case errors.Is(err, ErrRefused) && !has("may not run INFO"):
		return "connection", "" // the error has its own advice
	case op == "info" && (has("may not run INFO") || fault.IsCode(err, "NOPERM")):
		return "rights", "grant the right to it: ACL SETUSER " + user + " +info"
	case op == "credentials":
		return "rights", ""
	case fault.IsCode(err, "NOAUTH"):
		return "rights", "name the password in the URL, or by WithCredentials"
	case fault.IsCode(err, "WRONGPASS"), op == "auth" && reply != "":
		return "rights", "name the user and the password that this master knows, in the URL, by WithCredentials, or " +
			"by WithCredentialsProvider"
	case fault.IsCode(err, "NOPERM"):
		return "rights", "grant its user the rights that redlock check lists"
	case has("max number of clients"):
		return "connection", "raise maxclients, or close connections that are not needed (CLIENT LIST)"
	case fault.IsCode(err, "DENIED"):
		return "connection", "it is in protected mode: set a password (requirepass), or bind it to an address " +
			"that only clients reach"
	case fault.IsCode(err, "BUSY"):
		return "connection", "a script runs there: wait for it, or end it by SCRIPT KILL"
	case has("unknown command") && has("INFO"):
		return "connection", "name the master itself: this seems to be a proxy, which answers no INFO"
	case has("first record does not look like a TLS handshake"),
		has("TLS:") && (errors.Is(err, ErrTimeout) || errors.Is(err, io.EOF)):
		return "connection", "name the port for TLS, or use redis:// instead of rediss://"
	case has("certificate"):
		return "connection", "name the authority that has signed the certificate (WithTLSConfig), or the name that it is for"
	case has("too many colons"):
		return "connection", "write an IPv6 address in brackets: redis://[::1]:6379"
	case op == "select":
		return "rights", "name a database that there is, and that its user may select"
	case op != "connect" && (errors.Is(err, io.EOF) || has("the server closed it") || has("connection reset")):
		return "connection", "if the port is one for TLS, use rediss://; else read the server's log"
	case connecting && errors.Is(err, ErrTimeout):
		return "connection", "look whether it hangs (SLOWLOG, swapping, a long script), or give it more time by " +
			"WithDialTimeout"
	}
	return "connection", ""
}
