package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/must"
)

const rootModule = "github.com/redlock-go/redlock"

// released lists the directories of the modules that users import or install. The first is the root module, which all
// others require.
var released = []string{".", "cmd/redlock", "redlockgocron", "redlockgoredis", "redlockotel", "redlockprom",
	"redlockrueidis", "redlockvalkey"}

// user is the source of a program that imports the released modules.
const user = `package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
	"github.com/redlock-go/redlock/redlockgocron"
	"github.com/redlock-go/redlock/redlockgoredis"
	"github.com/redlock-go/redlock/redlockotel"
	"github.com/redlock-go/redlock/redlockprom"
	"github.com/redlock-go/redlock/redlockrueidis"
	"github.com/redlock-go/redlock/redlockvalkey"
)

// The program needs none of these functions, but imports their packages.
var _, _, _, _ = redlockgoredis.Master, redlockrueidis.Master, redlockvalkey.Master, redlockgocron.Every

func main() {
	masters := redlocktest.New(3)
	defer masters.Close()
	p, err := masters.Pool()
	if err != nil {
		panic(err)
	}
	defer p.Close()
	watcher, err := redlockotel.New()
	if err != nil {
		panic(err)
	}
	collector := redlockprom.New()
	prometheus.MustRegister(collector)
	locker, err := redlock.New(p, redlock.WithTrace(watcher.Trace()), redlock.WithTrace(collector.Trace()))
	if err != nil {
		panic(err)
	}
	defer locker.Close()
	err = locker.Do(context.Background(), "orders:42", func(context.Context, *redlock.Lock) error { return nil })
	fmt.Println("locked:", err)
}
`

// The released modules can be installed and imported with a fresh module cache, at the versions that their go.mod
// files require. The test serves the files of this tree as a module proxy would serve them after tagging. Other
// modules come from the usual cache.
func TestReleasedModulesCanBeInstalled(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it builds everything with a fresh module cache")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command in PATH")
	}
	proxy, version := serve(t)
	cache, bin := t.TempDir(), t.TempDir()
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS=-modcacherw", "GOSUMDB=off", "GOBIN="+bin, "GOMODCACHE="+cache,
		"GOPROXY=file://"+proxy+",file://"+goEnv(t, "GOMODCACHE")+"/cache/download,"+goEnv(t, "GOPROXY"))
	run := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("the command %s %q failed: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	dir := t.TempDir()
	run(dir, "go", "install", rootModule+"/cmd/redlock@"+version)
	if out := run(dir, filepath.Join(bin, "redlock"), "version"); !strings.HasPrefix(out, "redlock "+version+",") {
		t.Errorf("the installed command prints an unexpected version: %s", out)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(user), 0o644))
	run(dir, "go", "mod", "init", "example.com/user")
	run(dir, "go", "get", rootModule+"@"+version, rootModule+"/redlockotel@"+version, rootModule+"/redlockprom@"+version,
		rootModule+"/redlockgoredis@"+version, rootModule+"/redlockrueidis@"+version, rootModule+"/redlockvalkey@"+version,
		rootModule+"/redlockgocron@"+version)
	run(dir, "go", "mod", "tidy")
	if out := run(dir, "go", "run", "."); out != "locked: <nil>\n" {
		t.Errorf("the program printed %q", out)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out := must.Get(exec.Command("go", "env", name).Output())(t)
	return strings.TrimSpace(string(out))
}

// serve writes the released modules as files of a module proxy. It returns the directory of the proxy, and the version
// of all modules: that of the root module in their go.mod files.
func serve(t *testing.T) (proxy, version string) {
	t.Helper()
	proxy = t.TempDir()
	for _, dir := range released[1:] {
		v := requires(t, dir)
		if version == "" {
			version = v
		}
		if v != version {
			t.Fatalf("%s requires version %s of the root module, but %s requires %s", released[1], version, dir, v)
		}
	}
	for _, dir := range released {
		m := module.Version{Path: rootModule, Version: version}
		if dir != "." {
			m.Path += "/" + dir
		}
		at := filepath.Join(proxy, m.Path, "@v")
		must.Do(t, os.MkdirAll(at, 0o755))
		tree := filepath.Join("..", filepath.FromSlash(dir))
		mod := must.Get(os.ReadFile(filepath.Join(tree, "go.mod")))(t)
		for name, text := range map[string]string{
			"list": version + "\n", version + ".info": fmt.Sprintf(`{"Version":%q}`, version), version + ".mod": string(mod),
		} {
			must.Do(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o644))
		}
		f := must.Get(os.Create(filepath.Join(at, version+".zip")))(t)
		defer f.Close()
		must.Do(t, zip.CreateFromDir(f, m, tree))
	}
	return proxy, version
}

// requires returns the version of the root module that the module in dir requires. It fails the test if go.mod
// contains a replacement, because "go install" refuses replacements.
func requires(t *testing.T, dir string) (version string) {
	t.Helper()
	out := must.Get(exec.Command("go", "mod", "edit", "-json", filepath.Join("..", dir, "go.mod")).Output())(t)
	var mod struct {
		Require []module.Version
		Replace []any
	}
	must.Do(t, json.Unmarshal(out, &mod))
	if len(mod.Replace) > 0 {
		t.Errorf("the go.mod of %s contains a replace", dir)
	}
	for _, m := range mod.Require {
		if m.Path == rootModule {
			version = m.Version
		}
	}
	return version
}
