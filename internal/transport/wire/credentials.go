package wire

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// CredentialsFunc returns the ACL user, which may be empty, and the password for one connection.
type CredentialsFunc = func(ctx context.Context) (user, password string, err error)

// A Provider calls a CredentialsFunc for the connections of one Target, one call at a time.
type Provider struct {
	call CredentialsFunc
	busy chan struct{} // holds a token while a call is under way
	last atomic.Pointer[login]
}

// login is an ACL user and a password. The user may be empty. If the password is empty, connections do not log in.
type login struct{ user, password string }

// NewProvider returns a Provider that calls f.
func NewProvider(f CredentialsFunc) *Provider {
	return &Provider{call: f, busy: make(chan struct{}, 1)}
}

// Login returns the user and the password of the latest connection, or the fixed ones if there is no Provider.
func (t *Target) Login() (user, password string) {
	if t.Provider == nil {
		return t.User, t.Password
	}
	if l := t.Provider.last.Load(); l != nil {
		return l.user, l.password
	}
	return "", ""
}

// obtain calls the CredentialsFunc. obtain returns when ctx ends, even if the call has not returned. The goroutine of
// that call then remains, and the next call waits for its end.
func (p *Provider) obtain(ctx context.Context) (l login, err error) {
	select {
	case p.busy <- struct{}{}:
	case <-ctx.Done():
		return l, fault.Timeout("timed out: the credentials provider has not returned from an earlier call")
	}
	type answer struct {
		login
		err error
	}
	result := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("it ended its goroutine")}
		defer func() {
			if v := recover(); v != nil {
				a.err = panicked(v)
			}
			<-p.busy
			result <- a
		}()
		a.user, a.password, a.err = p.call(ctx)
		switch {
		case a.err != nil:
			a.err = p.scrub(a.err, a.password)
		case a.password == "":
			a.err = errors.New("it returned no password")
		}
	}()
	select {
	case a := <-result:
		if a.err == nil {
			p.last.Store(&a.login)
			return a.login, nil
		}
		if ctx.Err() == nil { // otherwise a.err is probably that of ctx: report the timeout
			return l, fmt.Errorf("the credentials provider failed: %w", a.err)
		}
	case <-ctx.Done():
	}
	return l, fault.Timeout("timed out: the credentials provider has not returned")
}

// panicked returns an error that describes a recovered panic. A panic value may contain a secret, so it is shown only
// if the Go runtime made it.
func panicked(v any) error {
	if err, ok := v.(runtime.Error); ok {
		return fmt.Errorf("it panicked: %s", err.Error())
	}
	return fmt.Errorf("it panicked with a value of type %T", v)
}

// query matches the query of a URL, which may contain tokens and signatures.
var query = regexp.MustCompile(`\?[^\s"']*=[^\s"']*`)

// scrub returns an error with the text of err, without credentials. The chain of err is dropped, because a context
// error in it would be mistaken for that of the caller's context, and an error of another pool for one of this pool.
// The Error method of err is the caller's code and may panic, so scrub must be called where panics are recovered.
func (p *Provider) scrub(err error, password string) error {
	text := fault.ScrubText(query.ReplaceAllString(err.Error(), "?"+fault.Hidden), password)
	if last := p.last.Load(); last != nil {
		text = fault.ScrubText(text, last.password)
	}
	return errors.New(text)
}
