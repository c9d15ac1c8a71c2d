package configfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// A deployment of one master is opened with the certificates of another authority. As soon as the files are replaced,
// the next attempt to connect succeeds, without a new client.
func TestCertificatesAreReadForEachConnection(t *testing.T) {
	right, wrong, used := redistest.Certificates(t), redistest.Certificates(t), t.TempDir()
	_, addr := redistest.SecureIn(t, right, "yes")
	install := func(from string, names ...string) {
		t.Helper()
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(from, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(used, name), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	install(wrong, "ca.pem", "client.pem", "client.key")
	l, shut := openFile(t, used, fmt.Sprintf(
		`{"masters": ["rediss://%s"], "ca": "ca.pem", "cert": "client.pem", "key": "client.key"}`, addr))
	defer shut()
	whenDown(t, l, "unknown authority")
	install(right, "ca.pem")
	whenDown(t, l, "tls: ")
	must.Do(t, os.Remove(filepath.Join(used, "client.key")))
	whenDown(t, l, "client.key: no such file")
	install(right, "client.pem", "client.key")
	whenUp(t, l)
}

// Sentinels have credentials of their own in the file, and the file with the password is read for each connection.
func TestCredentialsOfSentinels(t *testing.T) {
	server := redistest.Test(t, 1, redisproc.Config{})[0]
	sentinel := redistest.Sentinel(t, redisproc.Config{}, server.Addr(), 1, "requirepass right").Addr()
	used := t.TempDir()
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(used, "password"), []byte(text), 0o600))
	}
	write("wrong\n")
	l, shut := openFile(t, used, fmt.Sprintf(
		`{"masters": ["redis+sentinel://%s/master?allow=two-holders"], "sentinelPasswordFile": "password"}`, sentinel))
	defer shut()
	whenDown(t, l, "sentinels have credentials of their own")
	write("right\n")
	whenUp(t, l)
}

func openFile(t *testing.T, dir, text string) (l *redlock.Locker, shut func()) {
	t.Helper()
	path := filepath.Join(dir, "locks.json")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	c, err := configfile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if l, err = c.Open(); err != nil {
		t.Fatal(err)
	}
	return l, func() { _ = l.Close() } // no lock is held
}

// whenDown waits until the master is down for a reason with this text.
func whenDown(t *testing.T, l *redlock.Locker, reason string) {
	t.Helper()
	when(t, l, func(err error) bool { return err != nil && strings.Contains(err.Error(), reason) })
}

// whenUp waits until the master can be reached. It is new, so it may not vote yet.
func whenUp(t *testing.T, l *redlock.Locker) {
	t.Helper()
	when(t, l, func(err error) bool { return err == nil || strings.Contains(err.Error(), "quarantine") })
}

func when(t *testing.T, l *redlock.Locker, ok func(error) bool) {
	t.Helper()
	redistest.Await(t, time.Minute, func() string {
		if err := admin.Of(l).Masters()[0].Err; !ok(err) {
			return fmt.Sprintf("the reason of the master is %v", err)
		}
		return ""
	})
}
