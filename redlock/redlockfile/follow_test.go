package redlockfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockfile"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// A volume is a directory like that of a mounted Kubernetes ConfigMap with locks.json.
type volume struct {
	t    *testing.T
	dir  string
	data string // the directory to which ..data links
}

func newVolume(t *testing.T, text []byte) *volume {
	v := &volume{t: t, dir: t.TempDir()}
	v.swap(text)
	v.check(os.Symlink(filepath.Join("..data", "locks.json"), v.path()))
	return v
}

func (v *volume) path() string { return filepath.Join(v.dir, "locks.json") }

func (v *volume) check(errs ...error) {
	v.t.Helper()
	must.Do(v.t, errors.Join(errs...))
}

// swap replaces the data as the kubelet does (pkg/volume/util/atomic_writer.go): it makes a new directory and a
// symbolic link to it that replaces ..data, and removes the old directory. The link locks.json does not change.
func (v *volume) swap(text []byte) {
	v.t.Helper()
	next, err := os.MkdirTemp(v.dir, "..2026_")
	v.check(err, os.WriteFile(filepath.Join(next, "locks.json"), text, 0o600))
	link := filepath.Join(v.dir, "..data_tmp")
	v.check(os.Symlink(filepath.Base(next), link), os.Rename(link, filepath.Join(v.dir, "..data")))
	if v.data != "" {
		v.check(os.RemoveAll(v.data))
	}
	v.data = next
}

// Follow applies a change of a ConfigMap from three masters to a joint configuration of these and three other masters.
// A text that is no configuration changes nothing. A lock is held throughout.
func TestFollowAConfigMap(t *testing.T) {
	old, next := listen(t, 3), listen(t, 3)
	v := newVolume(t, marshal(t, redlock.Configuration{Masters: old}))
	var log bytes.Buffer // written by one goroutine of the Locker, and by Follow
	locker := must.Get(redlockfile.Open(v.path(), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		redlockfile.Follow(ctx, locker, v.path())
	}()
	lock := must.Get(locker.Lock(ctx, "orders:42"))(t)
	v.swap([]byte("{"))
	v.swap(marshal(t, redlock.Configuration{Epoch: 1, Masters: old, Next: next}))
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c := admin.Of(locker).Configuration()[0]
		if c.Epoch == 1 && len(c.Next) == 3 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the client still uses %+v", c)
		}
	}
	if err := lock.Err(); err != nil {
		t.Error(err)
	}
	// H164: the log names the whole configuration, not only its epoch.
	want := "epoch=1 list=" + client.SetOf(locker).Lists()[0] + "\n"
	cancel()
	<-ended
	if err := errors.Join(lock.Unlock(t.Context()), locker.Close()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), want) {
		t.Errorf("the log does not contain %q:\n%s", want, log.String())
	}
}

// Follow does not log the configuration with which it begins.
func TestFollowLogsOnlyChanges(t *testing.T) {
	v := newVolume(t, marshal(t, redlock.Configuration{Epoch: 1, Masters: listen(t, 3), Next: listen(t, 3)}))
	var log bytes.Buffer
	locker := must.Get(redlockfile.Open(v.path(), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	redlockfile.Follow(ctx, locker, v.path())
	if err := locker.Close(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), v.path()) {
		t.Errorf("the log is\n%swant nothing about the file, which has not changed", log.String())
	}
}

// Stats reports a file that cannot be used, until it can be used again. The log says why, in a line of at most 500
// bytes.
func TestStatsReportUnusableFile(t *testing.T) {
	text := marshal(t, redlock.Configuration{Masters: listen(t, 5)})
	v := newVolume(t, text)
	var log bytes.Buffer
	locker := must.Get(redlockfile.Open(v.path(), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))(t)
	defer func() {
		_ = locker.Close()
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "cannot use") && len(line) > 500 {
				t.Errorf("a line of the log has %d bytes: %s", len(line), line)
			}
		}
		if n := strings.Count(log.String(), "cannot use the masters of the file"); n != 2 {
			t.Errorf("the log says %d times that it cannot use the file, want 2:\n%s", n, log.String())
		}
	}()
	others := string(marshal(t, redlock.Configuration{Epoch: 2, Masters: listen(t, 5)}))
	for _, c := range []struct {
		text     string
		unusable bool
	}{{`{"` + strings.Repeat("x", 600) + `": 1}`, true}, {others, true}, {string(text), false}} {
		v.swap([]byte(c.text))
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		redlockfile.Follow(ctx, locker, v.path())
		cancel()
		if got := locker.Stats().FileUnusable; got != c.unusable {
			t.Errorf("with the file %s the file is unusable: %v, want %v", c.text, got, c.unusable)
		}
	}
}

// Follow ends with its Locker, also if the file has changed meanwhile, and does not complain.
func TestFollowEndsWithLocker(t *testing.T) {
	masters := listen(t, 3)
	for _, next := range []redlock.Configuration{{Masters: masters}, {Epoch: 1, Masters: masters, Next: masters[:1]}} {
		v := newVolume(t, marshal(t, redlock.Configuration{Masters: masters}))
		var log bytes.Buffer
		locker := must.Get(redlockfile.Open(v.path(), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))(t)
		ended := make(chan bool)
		go func() {
			defer close(ended)
			redlockfile.Follow(context.Background(), locker, v.path())
		}()
		must.Do(t, locker.WaitReady(t.Context()))
		must.Do(t, locker.Close())
		v.swap(marshal(t, next))
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatal("Follow has not returned")
		}
		if strings.Contains(log.String(), "cannot use") {
			t.Errorf("the log has a warning:\n%s", log.String())
		}
	}
}

// A file whose next masters cannot be reached is replaced by the file before. Follow gives that to the client, too,
// which has begun to use the next masters.
func TestFollowReturnsToTheFileBefore(t *testing.T) {
	before := redlock.Configuration{Masters: listen(t, 3)}
	joint := redlock.Configuration{Epoch: 1, Masters: before.Masters, Next: []string{"redis://127.0.0.1:1"}}
	v := newVolume(t, marshal(t, before))
	said := make(words, 100)
	locker := must.Get(redlockfile.Open(v.path(), redlock.WithLogger(slog.New(slog.NewTextHandler(said, nil)))))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		redlockfile.Follow(ctx, locker, v.path())
	}()
	v.swap(marshal(t, joint))
	said.await(t, "cannot use the masters of the file")
	v.swap(marshal(t, before))
	said.await(t, "using the masters of the file")
	cancel()
	<-ended
	if err := locker.Close(); err != nil {
		t.Error(err)
	}
}

// words receives the lines of a log.
type words chan string

func (w words) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

// await waits for a line with this text.
func (w words) await(t *testing.T, text string) {
	t.Helper()
	for hang := time.After(time.Minute); ; {
		select {
		case line := <-w:
			if strings.Contains(line, text) {
				return
			}
		case <-hang:
			t.Fatalf("the log does not say %q", text)
		}
	}
}

// The log says that a broken file can be used again, and it names the same error again if it comes back.
func TestFollowLogsThatTheFileIsBack(t *testing.T) {
	text := marshal(t, redlock.Configuration{Masters: listen(t, 3)})
	v := newVolume(t, text)
	var log bytes.Buffer
	locker, err := redlockfile.Open(v.path(), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		redlockfile.Follow(ctx, locker, v.path())
		close(ended)
	}()
	for _, broken := range []bool{true, false, true} {
		next := text
		if broken {
			next = text[:10]
		}
		v.swap(next)
		for end := time.Now().Add(time.Minute); locker.Stats().FileUnusable != broken; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the file is not seen to be broken: %v", broken)
			}
		}
	}
	cancel()
	<-ended
	if err := locker.Close(); err != nil {
		t.Error(err)
	}
	if strings.Count(log.String(), "cannot use the masters of the file") != 2 ||
		strings.Count(log.String(), "using the masters of the file") != 1 {
		t.Errorf("want two errors, and between them one record that the file is used; the log is\n%s", log.String())
	}
}

func listen(t *testing.T, n int) (urls []string) {
	t.Helper()
	masters := redlocktest.New(n)
	t.Cleanup(masters.Close)
	urls, err := masters.Listen()
	if err != nil {
		t.Fatal(err)
	}
	return urls
}

// Follow applies each change of the configuration file, which the command can also use, until ctx ends.
func ExampleFollow() {
	path, remove := writeFile(`{"masters": ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]}`)
	defer remove()

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	locker, err := redlockfile.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close() // the error says what could not be released
	go redlockfile.Follow(ctx, locker, path)
	fmt.Println(len(admin.Of(locker).Masters()), "masters")
	// Output: 3 masters
}
