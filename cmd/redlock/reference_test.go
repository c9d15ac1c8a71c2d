//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// errorRows returns the texts in the first column of the table of docs/reference.md, without names of Go.
func errorRows(t *testing.T) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		var texts []string
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			if !strings.HasPrefix(m[1], "Err") {
				texts = append(texts, m[1])
			}
		}
		rows = append(rows, texts)
	}
	return rows
}

// spoiled are the rows of errors that the masters of an adviceCase cause.
var spoiled = map[string][]string{
	"the master is in quarantine until ...": {"quarantine"},
	"master is down: connection refused":    {"down", "hung"},
	"OOM command not allowed":               {"full"},
	"WRONGPASS":                             {"no password", "wrong password"},
	"MISCONF":                               {"failed snapshot"},
	"BUSY ...":                              {"busy", "busy with a function"},
	"it is still loading its data":          {"loading"},
	"ERR max number of clients reached":     {"too many clients"},
	"NOREPLICAS ...":                        {"no replicas"},
	"x509: ...":                             {"unknown authority", "expired certificate", "another name"},
	"the masters have changed":              {"an old epoch"},
	"it is the same server as ...":          {"the same server"},
	"its clock is 1m1s ahead of the median": {"clock"},
	"master list mismatch":                  {"a wrong list"},
	"the admission record ... has version":  {"a record that cannot be read"},
}

// caused are the rows of errors of calls.
var caused = map[string]func(e *adviceEnv, c *caller){
	"held by LABEL": func(_ *adviceEnv, c *caller) { c.try("orders") },
	"it is unknown whether a client holds it": func(e *adviceEnv, c *caller) {
		for i := range e.servers[:2] {
			e.forgetAll(i)
		}
		c.run("who", "pay")
	},
	"the name is another kind of lock": func(_ *adviceEnv, c *caller) {
		_, err := c.locker.RWLock("orders").TryLock(c.ctx)
		c.note(err)
	},
	"another program wrote the key ...": func(e *adviceEnv, c *caller) {
		for i := range e.servers {
			e.do(i, "SET", scripts.Prefix("redlock").Lock("x"), "1")
		}
		c.try("x")
	},
	"NOPERM ...": func(e *adviceEnv, c *caller) {
		asUser("-info")(e)
		c.run("status")
		for _, s := range e.servers[:2] {
			redistest.Do(e.t, s, "ACL", "SETUSER", "default", "-hset")
		}
		c.try("x")
	},
	"READONLY": func(e *adviceEnv, c *caller) {
		host, port, _ := strings.Cut(e.servers[2].Addr(), ":")
		for _, s := range e.servers[:2] {
			redistest.Do(e.t, s, "REPLICAOF", host, port)
		}
		c.try("x") // before a heartbeat notices it
		c.run("status")
	},
	"connection reset": func(e *adviceEnv, c *caller) {
		for _, reset := range []bool{true, false} {
			e.urls[1] = e.named("redis://" + redistest.Answer(e.t, "127.0.0.1", func(raw net.Conn) {
				if reset {
					_ = raw.(*net.TCPConn).SetLinger(0)
				}
				_ = raw.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
				_, _ = io.Copy(io.Discard, raw) // a server that closes with unread data resets the connection
			}))
			c.run("status")
		}
	},
	"TTL ... is above the max TTL": func(_ *adviceEnv, c *caller) { c.try("x", redlock.WithTTL(time.Minute)) },
	"too many calls of this client are under way": func(e *adviceEnv, c *caller) {
		var wg sync.WaitGroup
		for i := range 6000 {
			wg.Go(func() { c.try(fmt.Sprint("x", i)) })
		}
		wg.Wait()
	},
	"no extension was sent in time": func(e *adviceEnv, c *caller) {
		f := &votingDeployment{e.deployment, built(e.t), setText(e.t, e.urls)}
		holder := f.start("run", "--ttl", "2s", "x", "--", "sh", "-c", "echo have it; exec sleep 600")
		holder.hear("have it")
		holder.signal(syscall.SIGSTOP)
		if _, err := c.locker.Lock(c.ctx, "x"); err != nil { // once the lock of the holder has expired
			e.t.Fatal(err)
		}
		holder.signal(syscall.SIGCONT)
		holder.ends(exitRunLost, "")
		c.note(errors.New(holder.said()))
	},
	"no majority extended it in time": func(e *adviceEnv, c *caller) {
		k, err := c.locker.TryLock(c.ctx, "x", redlock.WithTTL(2*time.Second))
		if err != nil {
			e.t.Fatal(err)
		}
		for _, s := range e.servers[:2] {
			_ = s.Kill()
		}
		<-k.Done()
		c.note(k.Err())
	},
}

func (e *adviceEnv) forgetAll(i int) {
	e.t.Helper()
	_ = e.servers[i].Kill()
	if err := e.servers[i].Restart(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
}

// A caller is a client whose errors and log are kept, with those of the command.
type caller struct {
	e      *adviceEnv
	ctx    context.Context
	locker *redlock.Locker
	mu     sync.Mutex
	said   bytes.Buffer
}

func (c *caller) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.Write(p)
}

func (c *caller) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.String()
}

func (c *caller) note(err error) { fmt.Fprintln(c, err) }

func (c *caller) try(name string, opts ...redlock.LockOption) {
	_, err := c.locker.TryLock(c.ctx, name, opts...)
	c.note(err)
}

func (c *caller) run(args ...string) {
	_, said := command(slices.Concat(args[:1], c.e.flags, c.e.urls, args[1:])...)
	_, _ = c.Write([]byte(said))
}

// calling starts a client of the masters of e.
func calling(e *adviceEnv) *caller {
	e.t.Helper()
	c := &caller{e: e}
	ctx, cancel := context.WithTimeout(e.t.Context(), 2*time.Minute)
	e.t.Cleanup(cancel)
	c.ctx = ctx
	var err error
	c.locker, err = redlock.Open(e.urls, redlock.WithLogger(slog.New(slog.NewTextHandler(c, nil))))
	if err != nil {
		c.note(err)
		return c
	}
	e.t.Cleanup(func() { _ = c.locker.Close() })
	return c
}

// Each text in the table of errors is what a client, check, status or who prints when the fault of its row is there.
func TestReferenceHasTheTexts(t *testing.T) {
	t.Parallel()
	signal.Ignore(syscall.SIGXFSZ) // for servers whose files may not grow
	cases := adviceCases()
	for _, row := range errorRows(t) {
		if len(row) == 0 {
			t.Error("a row has no text")
			continue
		}
		names, of := spoiled[row[0]]
		cause := caused[row[0]]
		if !of && cause == nil {
			t.Errorf("no case causes %q", row[0])
			continue
		}
		if !long.Enabled() {
			continue
		}
		t.Run(row[0], func(t *testing.T) {
			t.Parallel()
			missing := map[string]bool{}
			for _, text := range row {
				missing[text] = true
			}
			var all strings.Builder
			found := func(said string) {
				all.WriteString(said)
				for text := range missing {
					if rowPattern(text).MatchString(said) {
						delete(missing, text)
					}
				}
			}
			if cause != nil {
				e := newAdviceEnv(t, &adviceCase{})
				if row[0] == "too many calls of this client are under way" {
					for i := range e.urls {
						e.urls[i] = "redis://" + slowRelay(t, e.servers[i].Addr()) + "?name=" + e.servers[i].Addr()
					}
				}
				c := calling(e)
				if err := c.locker.WaitReady(c.ctx); err != nil {
					t.Fatal(err)
				}
				cause(e, c)
				found(c.text())
			}
			for _, name := range names {
				i := slices.IndexFunc(cases, func(c adviceCase) bool { return c.name == name })
				if i < 0 {
					t.Fatalf("there is no case %q", name)
				}
				e := newAdviceEnv(t, &cases[i])
				var early *caller
				if !cases[i].new {
					early = calling(e)
					if err := early.locker.WaitReady(early.ctx); err != nil {
						t.Fatal(err)
					}
				}
				cases[i].spoil(e)
				late := calling(e)
				early = cmp.Or(early, late)
				for range 8 {
					for _, c := range []*caller{early, late} {
						if c.locker != nil {
							ctx, cancel := context.WithTimeout(c.ctx, time.Second)
							k, err := c.locker.TryLock(ctx, "x")
							if err == nil {
								err = k.Unlock(ctx)
							}
							c.note(err)
							c.note(c.locker.Healthy(ctx))
							cancel()
						}
					}
					late.run("status")
					_, text := e.check()
					_, _ = late.Write([]byte(text))
					found(early.text() + late.text())
					if len(missing) == 0 {
						break
					}
				}
			}
			for text := range missing {
				t.Errorf("nothing says %q, but\n%s", text, uniqueLines(all.String()))
			}
		})
	}
}

// rowPattern returns the pattern for a text of the table.
func rowPattern(text string) *regexp.Regexp {
	p := regexp.QuoteMeta(text)
	p = strings.ReplaceAll(p, `\.\.\.`, ".*")
	p = strings.ReplaceAll(p, "LABEL", ".*")
	p = regexp.MustCompile(`\d+m\d+s`).ReplaceAllString(p, `[0-9ms.]+`)
	return regexp.MustCompile(p)
}

func uniqueLines(text string) string {
	var list []string
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		if key := number.ReplaceAllString(line, "N"); !seen[key] {
			seen[key] = true
			list = append(list, line)
		}
	}
	return strings.Join(list, "")
}

// slowRelay starts a relay to a server that delays each part of a reply, as a distant network does.
func slowRelay(t *testing.T, addr string) string {
	return redistest.Answer(t, "127.0.0.1", func(raw net.Conn) {
		redistest.Relay(raw, addr, func(data []byte) []byte {
			time.Sleep(80 * time.Millisecond)
			return data
		})
	})
}
