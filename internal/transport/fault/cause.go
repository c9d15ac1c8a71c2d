package fault

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A Cause says why a connection failed or a server refused a command. It follows from the types of the errors, and from
// the code of an error reply, never from other words of a text. It is an error, so that an error with a text of its own
// can keep it.
type Cause uint8

// Causes.
const (
	Unknown Cause = iota
	NotListening
	Closed      // the server has closed or reset the connection
	ClosedInTLS // the same, during the TLS handshake
	Hangs       // no answer in time
	HangsInTLS  // no answer to the TLS handshake in time: a port without TLS does not answer either
	NotTLS      // the answer to a TLS handshake is not TLS
	NotRESP     // the answer is no reply of Redis

	LocalFiles // the files with the certificates of this client cannot be read

	// The certificate of the server, as this host verifies it.
	Expired
	NotYetValid
	OtherName
	AnnouncedName // OtherName, of an address that sentinels or nodes of a cluster have announced
	UnknownAuthority
	UnfitCertificate // for another reason, such as its purpose

	// TLS alerts: the certificate of the client, as the server verifies it.
	ClientCertificateRequired
	ClientCertificateExpired
	ClientCertificateRevoked
	ClientAuthorityUnknown
	ClientCertificateRefused // for another reason
	NoCommonTLS              // no common version or cipher, or, before TLS 1.3, a missing client certificate

	// Error replies.
	NoLogin
	WrongLogin
	SentinelLogin // NoLogin or WrongLogin, of a sentinel
	NoSentinels   // too few sentinels return the address of the master
	NoRight
	MaxClients
	Protected
	Busy
	NoSuchCommand
	ClusterDown
)

// Error implements error. The text is not shown.
func (Cause) Error() string { return "cause" }

// alerts maps the TLS alerts that a server sends (RFC 8446, section 6) to causes.
var alerts = map[tls.AlertError]Cause{
	40:  NoCommonTLS,
	42:  ClientCertificateRefused, // bad_certificate, which OpenSSL also sends for one that is not yet valid
	43:  ClientCertificateRefused,
	44:  ClientCertificateRevoked,
	45:  ClientCertificateExpired,
	46:  ClientCertificateRefused,
	47:  NoCommonTLS,
	48:  ClientAuthorityUnknown,
	49:  ClientCertificateRefused,
	70:  NoCommonTLS,
	71:  NoCommonTLS,
	116: ClientCertificateRequired,
}

// codes maps the codes of error replies to causes.
var codes = map[string]Cause{
	"NOAUTH": NoLogin, "WRONGPASS": WrongLogin, "NOPERM": NoRight, "DENIED": Protected, "BUSY": Busy,
	"CLUSTERDOWN": ClusterDown,
}

// tooMany lists the replies of a server at its limit of clients, which have no code of their own.
var tooMany = []redis.Error{
	"ERR max number of clients reached", "ERR max number of clients + cluster connections reached",
}

// CauseOf returns the cause of err.
func CauseOf(err error) Cause {
	var known Cause
	var reply redis.Error
	switch {
	case err == nil:
		return Unknown
	case errors.As(err, &known):
		return known
	case errors.As(err, &reply):
		return causeOfReply(reply)
	}
	if c := causeOfTLS(err); c != Unknown {
		return c
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return NotListening
	case IsTimeout(err):
		return Hangs
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return Closed
	}
	return Unknown
}

// deniedInScript begins the replies of servers before Redis 7.2 to a script whose user lacks a right. They have no code
// of their own, and 6.2 puts a position before them.
const deniedInScript = "The user executing the script can't "

func causeOfReply(reply redis.Error) Cause {
	switch {
	case strings.Contains(string(reply), deniedInScript):
		return NoRight
	case slices.Contains(tooMany, reply):
		return MaxClients
	case UnknownCommand(reply):
		return NoSuchCommand
	}
	return codes[Code(reply)]
}

// unknownInScript is in the replies to a script with a command that the server does not have.
const unknownInScript = "Unknown Redis command called from"

// UnknownCommand reports whether a server refused a command because it does not have it.
func UnknownCommand(reply redis.Error) bool {
	return strings.HasPrefix(strings.ToLower(string(reply)), "err unknown command") ||
		strings.Contains(string(reply), unknownInScript)
}

func causeOfTLS(err error) Cause {
	var (
		unfit      x509.CertificateInvalidError
		record     tls.RecordHeaderError
		remote     *net.OpError
		unverified *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &unfit) && unfit.Reason == x509.Expired:
		if unfit.Cert != nil && time.Now().Before(unfit.Cert.NotBefore) {
			return NotYetValid
		}
		return Expired
	case errors.As(err, new(x509.HostnameError)):
		return OtherName
	case errors.As(err, new(x509.UnknownAuthorityError)), errors.As(err, new(x509.SystemRootsError)):
		return UnknownAuthority
	case errors.As(err, &unfit), errors.As(err, &unverified):
		return UnfitCertificate
	case errors.As(err, &record):
		return NotTLS
	case errors.As(err, &remote) && remote.Op == "remote error":
		for alert, cause := range alerts { // package tls does not export the type of an alert, only its texts
			if remote.Err.Error() == alert.Error() {
				return cause
			}
		}
	}
	return Unknown
}
