package fault

import (
	"errors"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// Hidden replaces text that may be a password.
const Hidden = "xxxxx"

// RedactURL returns raw without credentials, for error texts. It accepts texts that are no valid URL, and hides too
// much rather than too little: everything between the scheme and the last '@', the query, and a "port" that is not a
// number, as in "redis://:secret".
func RedactURL(raw string) string {
	start := 0
	if i := strings.Index(raw, "://"); i >= 0 {
		start = i + len("://")
	}
	scheme, rest := raw[:start], raw[start:]
	at := strings.LastIndexByte(rest, '@')
	shown, _, hasQuery := strings.Cut(rest[at+1:], "?")
	if hasQuery {
		shown += "?" + Hidden
	}
	if at >= 0 {
		return scheme + Hidden + "@" + shown
	}
	host, _, _ := strings.Cut(shown, "/")
	colon := strings.LastIndexByte(host, ':')
	port := host[colon+1:]
	isPort := len(port) <= 6 && strings.Trim(port, "-0123456789") == ""
	if colon >= 0 && !isPort && !strings.HasSuffix(host, "]") {
		shown = host[:colon+1] + Hidden
	}
	return scheme + shown
}

var userinfo = regexp.MustCompile(`://[^\s"'/@]*(?:/[^\s"'@]*)?@`)

// Scrub removes the credentials of URLs, and password, from an error of another package or a server: old servers repeat
// the arguments of an unknown command, and so those of AUTH, in the error reply. If Scrub changes the text, the result
// matches only those errors of the chain that callers test for.
func Scrub(err error, password string) error {
	if _, own := err.(*cause); own || err == nil { //nolint:errorlint // our own text, not one that wraps it
		return err
	}
	text := err.Error()
	clean := ScrubText(text, password)
	var bad *url.Error
	if errors.As(err, &bad) && bad.Op == "parse" {
		clean = "the URL cannot be parsed"
	}
	if clean == text {
		return err
	}
	keep := []error{CauseOf(err)}
	if IsTimeout(err) {
		keep = append(keep, ErrTimeout)
	}
	for _, is := range []error{ErrRefused, ErrPoolClosed, ErrDown, io.EOF, net.ErrClosed} {
		if errors.Is(err, is) {
			keep = append(keep, is)
		}
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		keep = append(keep, redis.Error(ScrubText(string(reply), password)))
	}
	return New(clean, keep...)
}

// ScrubText removes the credentials of URLs, and the password, from text.
func ScrubText(text, password string) string {
	text = userinfo.ReplaceAllString(text, "://"+Hidden+"@")
	if password != "" {
		text = strings.ReplaceAll(text, password, Hidden)
	}
	return text
}
