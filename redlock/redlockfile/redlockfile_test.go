package redlockfile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Open returns a Locker with the masters, the login and the prefix of the file.
func TestOpen(t *testing.T) {
	config := map[string]any{"prefix": "shop", "passwordFile": "pass"}
	var urls []string
	for _, s := range redistest.Test(t, 3, redisproc.Config{Args: []string{"--requirepass", "secret"}}) {
		urls = append(urls, "unix://"+s.Unix())
	}
	config["masters"] = urls
	path := write(t, config)
	must.Do(t, os.WriteFile(filepath.Join(filepath.Dir(path), "pass"), []byte("secret\n"), 0o600))
	ctx := t.Context()
	locker, err := redlockfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = admin.Of(locker).Admit(ctx)
	if err == nil {
		err = locker.Do(ctx, "orders:42", func(context.Context, *redlock.Lock) error { return nil })
	}
	if err := errors.Join(err, locker.Close()); err != nil {
		t.Error(err)
	}
}

func TestOpenRejectsInvalidFiles(t *testing.T) {
	masters := []string{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"}
	for want, config := range map[string]map[string]any{
		`unknown field "gaurd": "redlock help" shows the fields`:    {"masters": masters, "gaurd": "30s"},
		`"masters" is a string, and must be a list in brackets`:     {"masters": masters[0]},
		`"shards.masters" is a string, and must be a list`:          {"shards": []any{map[string]any{"masters": masters[0]}}},
		`"maxTTL" is a number, and must be a text in quotes`:        {"masters": masters, "maxTTL": 30},
		`"masters" names no master: give the URLs, or leave it out`: {"masters": []string{}},
		`the max TTL "soon"`:              {"masters": masters, "maxTTL": "soon"},
		"epoch 1":                         {"masters": masters, "epoch": 1},
		`"durable" names no master`:       {"masters": masters, "durable": []string{}}, // H162
		"give both":                       {"masters": masters, "cert": "client.pem"},
		`(or "shard") exclude each other`: {"masters": masters, "shards": []any{map[string]any{"masters": masters}}},
		"exclude each other":              {"masters": masters, "password": "p", "passwordFile": "f"},
		"above the max TTL":               {"masters": masters},
	} {
		_, err := redlockfile.Open(write(t, config), redlock.WithTTL(time.Hour))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", config, err, want)
		}
	}
	if _, err := redlockfile.Open(filepath.Join(t.TempDir(), "none.json")); !os.IsNotExist(err) {
		t.Error(err)
	}
}

func marshal(t *testing.T, config any) []byte {
	t.Helper()
	return must.Get(json.Marshal(config))(t)
}

func write(t *testing.T, config map[string]any) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "locks.json")
	must.Do(t, os.WriteFile(path, marshal(t, config), 0o600))
	return path
}

// writeFile writes the configuration file of an example.
func writeFile(text string) (path string, remove func()) {
	dir, err := os.MkdirTemp("", "")
	if err == nil {
		path = filepath.Join(dir, "locks.json")
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		panic(err)
	}
	return path, func() { _ = os.RemoveAll(dir) }
}

// The program and the command can use the same file: redlock status --config locks.json.
func ExampleOpen() {
	path, remove := writeFile(`{
		"masters": ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"], "prefix": "shop", "maxTTL": "1m"
	}`)
	defer remove()

	locker, err := redlockfile.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	for _, m := range admin.Of(locker).Masters() {
		fmt.Println(m.Addr)
	}
	// Output:
	// 10.0.0.1:6379
	// 10.0.0.2:6379
	// 10.0.0.3:6379
}
