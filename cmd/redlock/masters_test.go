package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// The masters are taken from the arguments, else from --masters, else from the file, else from the environment. who and
// ls accept names after the URLs of the masters.
func TestPrecedenceOfMasterLists(t *testing.T) {
	f := newDeployment(t, 3, redisproc.Config{})
	const unreachable = "redis://127.0.0.1:1"
	all, file, wrong := strings.Join(f.urls, " "), setText(t, f.urls), setText(t, []string{unreachable})
	t.Setenv(mastersVariable, all)
	call(t, exitDone, "3 of 3 masters vote", "admit")
	t.Setenv(mastersVariable, unreachable)
	call(t, exitDone, "3 of 3 masters vote", "status", "--config", file)
	call(t, exitDone, "3 of 3 masters vote", "status", "--config", wrong, "--masters", strings.Join(f.urls, ","))
	t.Setenv(mastersVariable, "")
	call(t, exitUsage, mastersVariable, "status")
	f.holder("orders:1")
	f.call(exitDone, "orders:1", "ls")
	call(t, exitDone, "orders:1", append(append([]string{"ls"}, f.urls...), "orders:")...)
	call(t, exitDone, `held by "web-1"`, append(append([]string{"who"}, f.urls...), "orders:1")...)
	f.call(exitUsage, "give the name of a lock", "who")
}

// If a list of URLs is not quoted, the shell passes the first one to --masters, and the others become arguments, which
// would be other masters, or names. No command does anything then.
func TestUnquotedListOfMasters(t *testing.T) {
	t.Parallel()
	const first, second = "redis://127.0.0.1:1", "redis://127.0.0.1:2"
	for _, args := range [][]string{
		{"status", second}, {"admit", "--yes", second}, {"who", second, "a"}, {"who", "a", second}, {"ls", second},
		{"release", "--force", "--yes", second}, {"web", second},
	} {
		args = append([]string{args[0], "--masters", first}, args[1:]...)
		call(t, exitUsage, `quote the list, as in --masters "$M"`, args...)
	}
	for _, args := range [][]string{{"run", second, "a", "--", "true"}, {"lock", second, "a"}} {
		call(t, exitRunUsage, "quote the list", append([]string{args[0], "--masters", first}, args[1:]...)...)
	}
}

// The file of --config can contain the password and the paths of TLS certificates.
func TestConfigFileWithPasswordAndCertificates(t *testing.T) {
	t.Parallel()
	f, dir, urls := &deployment{t: t}, redistest.Certificates(t), []string(nil)
	c := map[string]any{"password": "secret", "ca": "ca.pem", "cert": "client.pem", "key": "client.key", "prefix": "other"}
	for i := range 3 {
		s, addr := redistest.SecureIn(t, dir, "yes")
		f.servers, urls = append(f.servers, s), append(urls, "rediss://"+addr)
		f.do(i, "CONFIG", "SET", "requirepass", "secret")
	}
	c["masters"] = urls
	write := func() (path string) {
		path = filepath.Join(dir, "deployment.json")
		writeJSON(t, path, c)
		return path
	}
	path := write()
	call(t, exitDone, "3 of 3 masters vote", "admit", "--config", path)
	call(t, exitNoQuorum, "0 of 3 masters vote", "status", "--config", path, "--prefix", "redlock")
	delete(c, "cert")
	delete(c, "key")
	call(t, exitNoQuorum, "tls: certificate required", "status", "--config", write(), "--timeout", "2s")
	cert, key := filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key")
	call(t, exitDone, "3 of 3 masters vote", "status", "--config", path, "--cert", cert, "--key", key)
	call(t, exitUsage, "give both", "status", "--config", path, "--cert", cert)
	call(t, exitUsage, "is a file, not the URL of a master: use --config", "status", path)
	call(t, exitUsage, "no certificate in PEM", "status", "--config", path, "--ca", key)
	call(t, exitUsage, "no such file", "status", "--config", path, "--ca", "none.pem")
	c["maxTTL"] = "soon"
	call(t, exitUsage, "the max TTL \"soon\"", "status", "--config", write())
	c["gaurd"] = "30s"
	call(t, exitUsage, `unknown field "gaurd"`, "status", "--config", write())
}

// With --json each command writes one JSON value, also for an error.
func TestEachCommandWritesJSON(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3, redisproc.Config{})
	file := setText(t, f.urls)
	ask := func(code int, args ...string) map[string]any {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(append(args, "--json", "--config", file), &out, &errs); got != code {
			t.Fatalf("%q ended with code %d, want %d; the output is\n%s%s", args, got, code, out.String(), errs.String())
		}
		v := make(map[string]any)
		text := out.Bytes()
		if len(text) == 0 {
			text = errs.Bytes()
		}
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("the output of %q is not JSON: %v\n%s", args, err, text)
		}
		return v
	}
	if v := ask(exitDone, "admit"); v["can_lock"] != true || len(v["masters"].([]any)) != 3 {
		t.Errorf("admit printed %v, want 3 voting masters", v)
	}
	if v := ask(exitDone, "check"); len(v["findings"].([]any)) != 0 || v["status"] != 0.0 {
		t.Errorf("check printed %v, want no findings and status 0", v)
	}
	if v := ask(exitDone, "max-ttl"); v["masters"].([]any)[0].(map[string]any)["max_ttl_ms"] != 30000.0 {
		t.Errorf("max-ttl printed %v, want max_ttl_ms 30000", v)
	}
	if v := ask(exitDone, "set", file); v["open"] != 3.0 || v["next"] != nil {
		t.Errorf("set printed %v, want open 3 and no next step", v)
	}
	if v := ask(exitDone, "version"); v["version"] == "" {
		t.Errorf("version printed %v, want a version", v)
	}
	if v := ask(exitUsage, "quarantine"); !strings.Contains(v["error"].(string), `"master" not set`) {
		t.Errorf("quarantine printed %v, want an error about --master", v)
	}
}

// Completion scripts exist, and the command answers their queries.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		call(t, exitDone, "redlock", "completion", shell)
	}
	call(t, exitDone, "quarantine\tput one master into quarantine", "__complete", "q")
	call(t, exitDone, "--finish\tlet the next masters act without the old ones", "__complete", "set", "--fi")
	call(t, exitDone, "json\n:8", "__complete", "status", "--config", "")
}
