package pool

import (
	"errors"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/gomodule/redigo/redis"
)

const hidden = "xxxxx"

// redactURL returns raw fit for an error message. It works on texts that do not parse, where nobody knows what the
// writer meant as a password, so it hides rather too much: all between the scheme and the last '@', a "port" that is
// not a number, and every value of the query.
func redactURL(raw string) string {
	scheme, rest := "", raw
	if i := strings.Index(raw, "://"); i >= 0 {
		scheme, rest = raw[:i+3], raw[i+3:]
	}
	prefix := ""
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		prefix, rest = hidden+"@", rest[i+1:]
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	if hasQuery {
		rest += "?" + redactQuery(query)
	}
	if prefix == "" {
		rest = redactPort(rest)
	}
	return scheme + prefix + rest
}

func redactQuery(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		if key, _, ok := strings.Cut(pair, "="); ok && key != "db" {
			pairs[i] = key + "=" + hidden
		}
	}
	return strings.Join(pairs, "&")
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
	port := authority[colon+1:]
	if len(port) <= 6 && strings.Trim(port, "-0123456789") == "" {
		return rest
	}
	return authority[:colon+1] + hidden
}

var userinfo = regexp.MustCompile(`://[^\s"'/@]*(?:/[^\s"'@]*)?@`)

// scrub removes credentials from the text of a foreign error: those of URLs, and the ones that this master was
// given. Old servers repeat the arguments of a command that they do not know, AUTH among them. An error that had to
// be changed is cut off from its chain, whose links would still show them; of what it was only that is kept which
// decisions rest on.
func scrub(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	if _, own := err.(*cause); own { //nolint:errorlint // our own text, not one that wraps it
		return err
	}
	text := err.Error()
	clean := scrubText(text, secrets)
	var bad *url.Error
	if errors.As(err, &bad) && bad.Op == "parse" {
		clean = "the URL cannot be parsed"
	}
	if clean == text {
		return err
	}
	var keep []error
	if isTimeout(err) {
		keep = append(keep, ErrTimeout)
	}
	for _, is := range []error{ErrRefused, ErrClosed, ErrDown, io.EOF, net.ErrClosed} {
		if errors.Is(err, is) {
			keep = append(keep, is)
		}
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		keep = append(keep, redis.Error(scrubText(string(reply), secrets)))
	}
	return newCause(clean, keep...)
}

func scrubText(text string, secrets []string) string {
	text = userinfo.ReplaceAllString(text, "://"+hidden+"@")
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, hidden)
		}
	}
	return text
}
