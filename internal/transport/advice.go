package transport

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// steps maps each cause to the topic of its findings and the step that fixes it. %s is the user of the client.
var steps = map[fault.Cause]struct{ about, do string }{
	fault.NotListening: {"connection", ""}, // an error of a client says enough; findings have a step
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
	fault.NoSentinels:   {"connection", stepSentinels},
	fault.NoRight:       {"rights", NeedRights},
	fault.NoSuchCommand: {"rights", needCommands},
	fault.MaxClients:    {"connection", StepClients},
	fault.Protected:     {"connection", stepProtected},
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
	var reply redis.Error
	refused := errors.As(e.Err, &reply)
	switch {
	case !e.connecting() && !refused: // the next attempt to connect shows more
		return "connection", ""
	case e.Op == "info" && cause == fault.NoRight: // the text of the error names the right
		return "rights", fmt.Sprintf(infoRight, user)
	case errors.Is(e.Err, fault.ErrRefused): // the error has its own advice
		return "connection", ""
	case cause == fault.Busy && strings.Contains(string(reply), "FUNCTION KILL"): // it refuses SCRIPT KILL
		return "connection", fmt.Sprintf(stepBusy, "FUNCTION")
	case cause == fault.Busy:
		return "connection", fmt.Sprintf(stepBusy, "SCRIPT")
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

// The steps that errors and findings recommend; those of findings alone are in package diagnose. Each step is safe if
// it is followed literally. Commands are in backquotes. Redis commands are for the master of the finding, unless the
// step names another server. A test of "redlock check" follows each step on real servers, and fails if a step has no
// test case.
const (
	stepNothing       = "nothing: "
	stepPassword      = "set the password: in the file of --config, in the URL, or with WithCredentials"
	stepSentinelLogin = "set the user and the password of the sentinels (--sentinel-password-file, " +
		"WithSentinelCredentials)"
	stepSentinels = "start the sentinels that the error names, let them monitor the master, or correct their addresses " +
		"and rights, or the name of the master in the URL"
	stepLogin = "correct the user and the password of this client (the file of --config, the URL, WithCredentials or " +
		"WithCredentialsProvider), or those of the server (ACL LIST, requirepass)"
	StepClients   = "stop a program that holds no locks and has many connections there"
	stepProtected = "decide who may access it: give it a password (requirepass) that is in the URLs of all clients, or " +
		"bind it to an address that only clients reach"
	stepBusy = "a script is running there: end it with `%s KILL`; if the reply is UNKILLABLE, the script has " +
		"written data: if it does not end, stop this server, and start it after the max TTL has passed"
	stepProxy  = "use the address of the master itself: this seems to be a proxy, which does not answer INFO"
	StepPlain  = "use the TLS port, or redis:// instead of rediss://"
	stepServer = "use the address of a Redis or Valkey server: something else answers there"

	stepFiles   = "make the files of --ca, --cert and --key valid and readable"
	StepExpired = "renew the certificate of the server; if it is still valid, correct the clock of this host"
	stepEarly   = "correct the clock of this host, or that of the host which made the certificate of the server, and " +
		"renew it"
	stepAuthority = "set the certificate authority that signed its certificate (--ca, WithTLSConfig)"
	stepUnfit     = "replace the certificate of the server by one that is valid for TLS servers"
	stepHost      = "use a host name that is in its certificate"
	stepAnnounced = "add this address to the certificate of each server; or let its sentinels use the host names in the " +
		"certificates: in each sentinel, resolve-hostnames yes, announce-hostnames yes, and the host name of the master in " +
		"sentinel monitor; in each server, its host name in replica-announce-ip"

	stepClientCertificate = "set the certificate of this client (--cert and --key, WithTLSConfig): the server requires one"
	StepClientExpired     = "renew the certificate of this client (--cert); if it is still valid, correct the clock of " +
		"the server"
	stepClientRevoked   = "replace the certificate of this client (--cert): it is revoked"
	stepClientAuthority = "use a certificate of this client (--cert) that an authority of the server has signed " +
		"(tls-ca-cert-file)"
	stepClientRefused = "replace the certificate of this client (--cert); the log of the server says what is wrong with it"
	stepCommon        = "set the certificate of this client (--cert and --key) if the server requires one; else let it " +
		"accept TLS 1.2 or 1.3 (tls-protocols, tls-ciphers)"
	stepSecret   = "make its password readable: the file, or the result of the command or the provider"
	stepDatabase = "use a database that exists, and that its user may select"
	stepClosed   = "if the port is one for TLS, use rediss://; if not, " + stepFull
	stepFull     = "if it serves other clients, it has as many as it allows (maxclients): " + StepClients +
		"; else read the server's log"
	StepHangs = "find out whether its machine runs and can be reached (network, firewall); if so, why the server hangs: " +
		"a stopped process, swapping, a slow command (SLOWLOG), a pause (CLIENT PAUSE)"
	StepDiffer = "use different servers, each on its own machine; a server with a new address keeps its name (?name=)"

	StepRefuses = "this server refuses what the scripts need: decide from its message, or use another server (Redis 6.2 " +
		"or Valkey 7.2, or later)"

	stepIdentity = "use Redis 6.2 or Valkey 7.2, or later, without a proxy in between; for tests without a " +
		"server use package redlock/redlocktest, which miniredis cannot replace"
	stepLoading     = stepNothing + "wait: the client tries again when its data is loaded"
	stepCluster     = "use redis+cluster://host:port?buckets=64, or a server with cluster-enabled no"
	stepSingle      = "use redis://host:port"
	stepSentinelURL = "use redis+sentinel://, with the addresses of the sentinels and their name of the master"

	StepMessage = "decide from the server's message"
	StepRights  = "grant the missing rights: `ACL SETUSER %s %s`"

	StepInStep    = "start its replicas, or correct the network between it and them"
	stepStops     = "use Redis 6.2.7 or later"
	stepNoConfig  = "use a master without failover: this one has no CONFIG, so its settings cannot be read"
	stepAll       = "`CONFIG SET %s %d` on each of its servers"
	stepDownAfter = "on each sentinel, set down-after-milliseconds to 5000; in a cluster, set cluster-node-timeout to " +
		"5000 on each node"
)

// Advice of a client, which sees one failure at a time. Package diagnose has steps of its own.
const (
	silentTLS   = "run redlock check: it shows whether the server hangs, or its port is one without TLS"
	infoRight   = "grant the right to run INFO: `ACL SETUSER %s +info`"
	ConfigRight = "grant the right to read it: `ACL SETUSER %s +config|get`"

	NeedRights   = "grant its user the rights that redlock check lists"
	needCommands = "it lacks commands, or they are renamed: redlock check lists them, and names the step"
)
