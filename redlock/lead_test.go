package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A term is one leadership: one call of the function of Lead.
type term struct {
	who   int // number of the client
	token int64
	ctx   context.Context
	leave chan error // the function returns the error that it receives, and ignores ctx
}

// campaign makes l, the client with the number who, campaign for the name "boss" in the background. Each leadership is
// sent to terms, and the result of Lead is sent to ended.
func (w *cluster) campaign(
	ctx context.Context, l *redlock.Locker, who int, terms chan<- term, opts ...redlock.LockOption,
) (ended chan error) {
	ended = make(chan error, 1)
	go func() {
		ended <- l.Lead(ctx, "boss", func(ctx context.Context, lock *redlock.Lock) error {
			t := term{who, lock.Token(), ctx, make(chan error)}
			terms <- t
			return <-t.leave
		}, opts...)
	}()
	return ended
}

// If the function of a leader returns nil, the leadership and the campaign end. If it returns an error, only the
// leadership ends, and the client campaigns again after a pause.
func TestLeaderReturns(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		terms := make(chan term)
		var book logbook
		first, second := w.locker(book.option()), w.locker()
		endedFirst := w.campaign(w.Context(), first, 1, terms)
		one := <-terms
		endedSecond := w.campaign(w.Context(), second, 2, terms)
		after(time.Minute)
		select {
		case <-terms:
			w.Fatal("two clients lead")
		default:
		}
		failed := time.Now()
		one.leave <- errors.New("mine")
		two := <-terms
		if two.who != 2 || two.token <= one.token || time.Since(failed) > 100*time.Millisecond {
			w.Errorf("%v later client %d leads with token %d after %d", time.Since(failed), two.who, two.token, one.token)
		}
		w.isError(context.Cause(one.ctx), redlock.ErrReleased)
		synctest.Wait()
		book.wants(w, 1, "level=WARN", "leader resigned, because its function returned an error", "lock=boss", "error=mine")
		after(3 * time.Second) // the first client campaigns again
		two.leave <- nil
		w.noError(<-endedSecond)
		again := <-terms
		if again.who != 1 || again.token <= two.token {
			w.Errorf("client %d leads with token %d, want client 1 and more than %d", again.who, again.token, two.token)
		}
		again.leave <- nil
		w.noError(<-endedFirst)
		w.wantFree("boss")
	})
}

// H174: Lead campaigns until its context ends, however the Locker and the call limit a wait: a standby outlasts a long
// leadership of another client and an outage of the masters, and then leads.
func TestStandbyStays(t *testing.T) {
	const soon, later = 10 * time.Millisecond, 3 * time.Second
	limit, tries := redlock.WithWaitLimit(3*time.Second), redlock.WithTries(2)
	for how, c := range map[string]struct {
		locker []redlock.Option
		call   []redlock.LockOption
		within time.Duration
	}{
		"wait limit of the Locker": {[]redlock.Option{limit}, nil, soon},
		"wait limit of the call":   {nil, []redlock.LockOption{limit}, soon},
		"tries of the Locker":      {[]redlock.Option{tries}, nil, later},
		"tries of the call":        {nil, []redlock.LockOption{tries, limit}, later},
	} {
		subtest(t, how, 3, func(w *cluster) {
			k := must(w.locker().Lock(w.Context(), "boss"))(w)
			terms := make(chan term)
			ended := w.campaign(w.Context(), w.locker(c.locker...), 1, terms, c.call...)
			leads := func(within time.Duration) term {
				select {
				case t := <-terms:
					return t
				case err := <-ended:
					w.Fatalf("the standby has returned: %v", err)
				case <-time.After(within):
					w.Fatalf("the standby does not lead after %v", within)
				}
				return term{}
			}
			after(time.Minute)
			w.noError(k.Unlock(w.Context()))
			first := leads(c.within)
			w.stop(0, 1)
			first.leave <- errors.New("mine")
			after(time.Minute)
			w.restart(true, 0, 1)
			leads(time.Minute).leave <- nil
			w.noError(<-ended)
		})
	}
}

// H174: a campaign ends when the Locker is closed, or its pool, and does not begin if the call is wrong, or if its
// context belongs to an ended lock of the name: it could never lead.
func TestCampaignsThatEnd(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		must(w.locker().Lock(w.Context(), "boss"))(w)
		terms := make(chan term)
		p := w.pool()
		l := w.readyLocker(p, redlock.WithWaitLimit(time.Second))
		standby := w.campaign(w.Context(), l, 1, terms)
		w.says(<-w.campaign(w.Context(), l, 1, terms, redlock.WithWaitLimit(-1)), redlock.ErrInvalid, "wait limit")
		w.isError(<-w.campaign(w.Context(), l, 1, terms, redlock.WithTTL(time.Hour)), redlock.ErrInvalid)
		own := must(l.Lock(w.Context(), "own"))(w)
		w.masters.Lose("own")
		<-own.Done()
		w.isError(l.Lead(context.WithoutCancel(own.Context(w.Context())), "own", nothing), redlock.ErrLost)
		after(time.Minute)
		w.must(l.Close())
		w.isError(<-standby, redlock.ErrClosed)
		for h, err := range l.Watch(w.Context(), "boss") {
			w.Errorf("Watch of a closed Locker reported %v, %v", h, err)
		}
		l = w.newLocker(p, redlock.WithTries(1))
		w.must(l.WaitReady(w.Context()), p.Close())
		w.isError(<-w.campaign(w.Context(), l, 1, terms), pool.ErrClosed)
	})
}

// If the function of a leader fails each time, its client pauses for at least a second after each failure.
func TestFailingLeaderPauses(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		ctx := w.withTimeout(20 * time.Second)
		n := 0
		err := l.Lead(ctx, "boss", func(context.Context, *redlock.Lock) error { n++; return errors.New("mine") })
		w.isError(err, context.DeadlineExceeded)
		if n < 10 || n > 20 {
			w.Errorf("the client led %d times in 20 s", n)
		}
	})
}

// A leader campaigns again after its max hold, even if its function returned nil. The campaign ends with its context.
func TestLeaderCampaignsAgainAfterMaxHold(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		terms := make(chan term)
		ctx, cancel := context.WithCancel(w.Context())
		ended := w.campaign(ctx, w.locker(), 1, terms, redlock.WithMaxHold(time.Minute))
		one := <-terms
		w.ends(one.ctx, time.Minute+time.Second, redlock.ErrMaxHold)
		one.leave <- nil
		two := <-terms
		cancel()
		two.leave <- two.ctx.Err()
		w.isError(<-ended, context.Canceled)
		w.wantFree("boss")
	})
}

// The context of a leader ends before another client can lead. While a majority of the masters is down no client
// leads, and a client leads again when the masters are back. A function that ignores the end of its context blocks
// only its own client.
func TestLeaderEndsBeforeNextLeads(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		terms := make(chan term, 2)
		ctx, cancel := context.WithCancel(w.Context())
		first, second := w.locker(), w.locker()
		endedFirst := w.campaign(ctx, first, 1, terms, redlock.WithExtension(false)) // the leadership ends with its TTL
		one := <-terms
		endedSecond := w.campaign(ctx, second, 2, terms)
		two := <-terms
		if one.ctx.Err() == nil || !errors.Is(context.Cause(one.ctx), redlock.ErrLost) {
			w.Errorf("%d leads, and the context of %d ended with %v", two.who, one.who, context.Cause(one.ctx))
		}
		w.stop(0, 1)
		w.ends(two.ctx, redlock.DefaultTTL, redlock.ErrLost)
		after(time.Minute)
		w.restart(true, 0, 1)
		after(time.Minute) // the quarantine; no client leads, since both functions hang
		if len(terms) != 0 {
			w.Error("one client leads twice at the same time")
		}
		two.leave <- errors.New("mine")
		three := <-terms
		if three.who != two.who || three.token <= two.token {
			w.Errorf("client %d leads with token %d, want the same client and more than %d", three.who, three.token, two.token)
		}
		cancel()
		one.leave <- ctx.Err()
		three.leave <- ctx.Err()
		w.isError(<-endedFirst, context.Canceled)
		w.isError(<-endedSecond, context.Canceled)
		w.wantFree("boss")
	})
}

// H122: a leader that has lost its lock campaigns again, regardless of what its function returns. The log reports
// this, with the label.
func TestLeadAfterLoss(t *testing.T) {
	for how, result := range map[string]func(ctx context.Context) error{
		"nil":   func(context.Context) error { return nil },
		"error": func(context.Context) error { return errors.New("mine") },
		"cause": context.Cause,
	} {
		subtest(t, how, 3, func(w *cluster) {
			var book logbook
			l := w.locker(book.option(), redlock.WithLabel("web-1"))
			terms := 0
			err := l.Lead(w.Context(), "boss", func(ctx context.Context, _ *redlock.Lock) error {
				if terms++; terms > 1 {
					return nil
				}
				w.masters.Lose("boss")
				<-ctx.Done()
				return result(ctx)
			})
			synctest.Wait()
			text := strings.Join(book.since(), "\n")
			if err != nil || terms != 2 || strings.Contains(text, "resigned") ||
				!strings.Contains(text, `msg="redlock: leadership was lost, campaigning again" label=web-1 lock=boss`) {
				w.Errorf("Lead returned %v after %d terms, want 2; the log:\n%s", err, terms, text)
			}
		})
	}
}

// H122: at an orderly shutdown, and after Close, the log does not say that a leader campaigns again, regardless of what
// its function returns.
func TestLeadAtShutdown(t *testing.T) {
	for how, result := range map[string]func(ctx context.Context) error{
		"nil": func(context.Context) error { return nil }, "error": context.Context.Err,
		"cause": context.Cause,
	} {
		subtest(t, how, 3, func(w *cluster) {
			var book logbook
			l := w.locker(book.option())
			ctx, cancel := context.WithCancel(w.Context())
			lead := func(ctx context.Context) error {
				return l.Lead(ctx, "boss", func(ctx context.Context, _ *redlock.Lock) error {
					<-ctx.Done()
					return result(ctx)
				})
			}
			time.AfterFunc(time.Second, cancel)
			err := lead(ctx)
			if how == "nil" && err != nil || how != "nil" && err != context.Canceled { //nolint:errorlint // nothing around it
				w.Errorf("Lead returned %v, which says more than the end of its context", err)
			}
			time.AfterFunc(time.Second, func() { _ = l.Close() })
			w.isError(lead(w.Context()), redlock.ErrClosed)
			synctest.Wait()
			w.noLog(&book)
		})
	}
}
