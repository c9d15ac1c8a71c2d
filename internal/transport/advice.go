package transport

import (
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// steps maps each cause to the topic of its findings and the step that fixes it. %s is the user of the client.
var steps = map[fault.Cause]struct{ about, do string }{
	fault.NotListening: {"connection", ""}, // an error of a client says enough; Check replaces it with stepStart
	fault.Closed:       {"connection", stepClosed},
	fault.ClosedInTLS:  {"connection", stepFull},
	fault.Hangs:        {"connection", StepHangs},
	fault.HangsInTLS:   {"connection", silentTLS},
	fault.NotTLS:       {"connection", StepPlain},
	fault.NotRESP:      {"connection", stepServer},

	fault.LocalFiles:       {"connection", stepFiles},
	fault.Expired:          {"connection", StepExpired},
	fault.NotYetValid:      {"connection", stepEarly},
	fault.OtherName:        {"connection", stepHost},
	fault.AnnouncedName:    {"connection", stepAnnounced},
	fault.UnknownAuthority: {"connection", stepAuthority},
	fault.UnfitCertificate: {"connection", stepUnfit},

	fault.ClientCertificateRequired: {"connection", stepClientCertificate},
	fault.ClientCertificateExpired:  {"connection", StepClientExpired},
	fault.ClientCertificateRevoked:  {"connection", stepClientRevoked},
	fault.ClientAuthorityUnknown:    {"connection", stepClientAuthority},
	fault.ClientCertificateRefused:  {"connection", stepClientRefused},
	fault.NoCommonTLS:               {"connection", stepCommon},

	fault.NoLogin:       {"rights", stepPassword},
	fault.WrongLogin:    {"rights", stepLogin},
	fault.SentinelLogin: {"rights", stepSentinelLogin},
	fault.NoRight:       {"rights", "grant its user the rights that redlock check lists"},
	fault.MaxClients:    {"connection", stepClients},
	fault.Protected:     {"connection", stepProtected},
	fault.Busy:          {"connection", stepBusy},
	fault.ClusterDown:   {"connection", StepMessage},
}

// connecting reports whether the error is about the start of a connection, rather than about one that was up.
func (e *Error) connecting() bool {
	switch e.Op {
	case "connect", "credentials", "auth", "select", "info", "script load", "config get", "client":
		return true
	}
	return false
}

// Advice returns the topic of the failure and the step that fixes it, or "" if the cause suggests no step. Error texts
// and findings of package diagnose contain the same step. user is the name that the client logs in with.
func (e *Error) Advice(user string) (about, do string) {
	cause := fault.CauseOf(e.Err)
	refused := errors.As(e.Err, new(redis.Error))
	switch {
	case !e.connecting() && !refused: // the next attempt to connect shows more
		return "connection", ""
	case e.Op == "info" && cause == fault.NoRight: // the text of the error names the right
		return "rights", fmt.Sprintf(infoRight, user)
	case errors.Is(e.Err, ErrRefused): // the error has its own advice
		return "connection", ""
	case e.Op == "credentials":
		return "rights", stepSecret
	case e.Op == "select" && cause == fault.NoRight:
		return "rights", fmt.Sprintf(StepRights, user, "+select")
	case e.Op == "select" && refused && cause == fault.Unknown:
		return "rights", stepDatabase
	case e.Op == "auth" && refused && cause == fault.Unknown:
		return "rights", stepLogin
	case e.Op == "info" && cause == fault.NoSuchCommand:
		return "connection", stepProxy
	}
	step, known := steps[cause]
	if !known && refused && !e.connecting() && unexplained(e.Err) {
		return "scripts", StepRefuses
	}
	if !known {
		return "connection", ""
	}
	return step.about, step.do
}

// unexplained reports whether err is an error reply to a script that no rule of this client explains.
func unexplained(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) || fault.Transient(reply) {
		return false
	}
	switch fault.Code(reply) {
	case "NOSCRIPT", "WRONGTYPE", "BADFENCE", "MOVED", "ASK":
		return false
	}
	return true
}
