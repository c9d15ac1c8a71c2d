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

// Hidden stands in the place of what may be a password.
const Hidden = "xxxxx"

// RedactURL returns raw fit for an error message. It works on texts that do not parse, so it hides rather too much:
// all between the scheme and the last '@', a "port" that is not a number, and the query.
func RedactURL(raw string) string {
	scheme, rest := "", raw
	if i := strings.Index(raw, "://"); i >= 0 {
		scheme, rest = raw[:i+3], raw[i+3:]
	}
	prefix := ""
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		prefix, rest = Hidden+"@", rest[i+1:]
	}
	rest, _, hasQuery := strings.Cut(rest, "?")
	if hasQuery {
		rest += "?" + Hidden
	}
	if prefix == "" {
		rest = redactPort(rest)
	}
	return scheme + prefix + rest
}

// redactPort hides what stands where a port should be: in "redis://:secret" the host was forgotten.
func redactPort(rest string) string {
	if strings.HasPrefix(rest, "/") {
		return rest
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority = rest[:i]
	}
	colon := strings.LastIndexByte(authority, ':')
	if colon < 0 || strings.HasSuffix(authority, "]") {
		return rest
	}
	if port := authority[colon+1:]; len(port) <= 6 && strings.Trim(port, "-0123456789") == "" {
		return rest
	}
	return authority[:colon+1] + Hidden
}

var userinfo = regexp.MustCompile(`://[^\s"'/@]*(?:/[^\s"'@]*)?@`)

// Scrub removes credentials from the text of a foreign error: those of URLs, and the password that this master was
// given, since old servers repeat the arguments of a command that they do not know, AUTH among them. The chain of an
// error that had to be changed would still show them, so only what decisions rest on is kept of it.
func Scrub(err error, password string) error {
	if err == nil {
		return nil
	}
	if _, own := err.(*cause); own { //nolint:errorlint // our own text, not one that wraps it
		return err
	}
	text := err.Error()
	clean := scrubText(text, password)
	var bad *url.Error
	if errors.As(err, &bad) && bad.Op == "parse" {
		clean = "the URL cannot be parsed"
	}
	if clean == text {
		return err
	}
	var keep []error
	if IsTimeout(err) {
		keep = append(keep, ErrTimeout)
	}
	for _, is := range []error{ErrRefused, ErrClosed, ErrDown, io.EOF, net.ErrClosed} {
		if errors.Is(err, is) {
			keep = append(keep, is)
		}
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		keep = append(keep, redis.Error(scrubText(string(reply), password)))
	}
	return New(clean, keep...)
}

func scrubText(text, password string) string {
	text = userinfo.ReplaceAllString(text, "://"+Hidden+"@")
	if password == "" {
		return text
	}
	return strings.ReplaceAll(text, password, Hidden)
}
