package pool

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
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
// be changed is cut off from its chain, whose links would still show them.
func scrub(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	clean := userinfo.ReplaceAllString(text, "://"+hidden+"@")
	var bad *url.Error
	if errors.As(err, &bad) && bad.Op == "parse" {
		clean = "the URL cannot be parsed"
	}
	for _, s := range secrets {
		if s != "" {
			clean = strings.ReplaceAll(clean, s, hidden)
		}
	}
	if clean == text {
		return err
	}
	if isTimeout(err) {
		return newCause(clean, ErrTimeout)
	}
	return errors.New(clean)
}
