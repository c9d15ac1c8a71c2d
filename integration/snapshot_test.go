package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// GoReleaser makes the packages of the command from a clean clone, for this system only. The program in the archive and
// that in the deb package run a command under a lock. The container image, if a Docker engine with buildx can make it,
// shows the masters.
func TestSnapshotOfReleaseCanBeInstalled(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it builds packages")
	}
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: it opens a deb package")
	}
	for _, tool := range []string{"goreleaser", "git", "tar", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	if err := exec.Command("git", "-C", "..", "rev-parse", "HEAD").Run(); err != nil {
		t.Skip("needs the repository of this tree")
	}
	tree := filepath.Join(t.TempDir(), "redlock")
	run := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q failed: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run(".", "git", "clone", "-q", "..", tree)
	onlyHere(t, filepath.Join(tree, ".goreleaser.yaml"))
	run(tree, "goreleaser", "check")
	release := []string{"release", "--snapshot", "--clean"}
	images := exec.Command("docker", "info").Run() == nil && exec.Command("docker", "buildx", "version").Run() == nil
	if !images {
		t.Log("the container image is not made: that needs a Docker engine, and buildx")
		release = append(release, "--skip=docker")
	}
	run(tree, "goreleaser", release...)
	if text := run(tree, "git", "status", "--porcelain"); strings.Count(text, "\n") != 1 {
		t.Errorf("more than .goreleaser.yaml has changed:\n%s", text)
	}

	var urls []string
	for _, s := range redistest.Test(t, 3, redisproc.Config{}) {
		urls = append(urls, s.URL())
	}
	one := func(pattern string) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(tree, "dist", pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("there are %d files %s, %v; want one", len(found), pattern, err)
		}
		return found[0]
	}
	from := map[string]string{"archive": t.TempDir(), "deb": t.TempDir()}
	run(".", "tar", "-xzf", one("*.tar.gz"), "-C", from["archive"])
	run(".", "dpkg-deb", "-x", one("*.deb"), from["deb"])
	for name, files := range map[string][]string{
		"archive": {"LICENSE", "README.md", "dist-extra/redlock.1", "dist-extra/completions/redlock.bash"},
		"deb": {
			"usr/share/man/man1/redlock.1", "usr/share/bash-completion/completions/redlock",
			"usr/share/zsh/vendor-completions/_redlock", "usr/share/fish/vendor_completions.d/redlock.fish",
		},
	} {
		for _, file := range files {
			if info, err := os.Stat(filepath.Join(from[name], file)); err != nil || info.Size() == 0 {
				t.Errorf("the %s has no %s: %v", name, file, err)
			}
		}
	}
	job := append([]string{"run", "--masters", strings.Join(urls, " "), "job", "--"}, "sh", "-c", "echo $REDLOCK_TOKEN")
	run(".", filepath.Join(from["deb"], "usr/bin/redlock"), append([]string{"admit", "--yes"}, urls...)...)
	for _, program := range []string{
		filepath.Join(from["archive"], "redlock"), filepath.Join(from["deb"], "usr/bin/redlock"),
	} {
		if text := run(".", program, job...); !regexp.MustCompile(`(?m)^\d{16}$`).MatchString(text) {
			t.Errorf("%s printed %q, want a token", program, text)
		}
	}

	if !images {
		return
	}
	made := strings.Fields(run(".", "docker", "images", "--format", "{{.Repository}}:{{.Tag}}", testImage))
	if len(made) != 2 { // with the tag of the version, and latest
		t.Fatalf("the images are %q, want one with two tags", made)
	}
	defer run(".", "docker", append([]string{"rmi"}, made...)...)
	status := append([]string{"run", "--rm", "--network", "host", made[0], "status"}, urls...)
	if text := run(".", "docker", status...); !strings.Contains(text, "3 of 3 masters vote") {
		t.Errorf("in the image, redlock status printed %q", text)
	}
}

// testImage is the name of the image of this test.
const testImage = "redlock-test/command"

// The comparison of the API with the last release fails after an incompatible change that the changelog does not name.
func TestIncompatibleChangesMustBeNamed(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it compiles the library twice")
	}
	tree := filepath.Join(t.TempDir(), "redlock")
	if out, err := exec.Command("git", "clone", "-q", "..", tree).CombinedOutput(); err != nil {
		t.Skipf("needs the repository of this tree: %s", out)
	}
	if out, err := exec.Command("git", "-C", tree, "tag", "v0.1.0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	replace := func(name, old, text string) {
		t.Helper()
		path := filepath.Join(tree, name)
		content, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(content), old) {
			t.Fatalf("%s has no %q: %v", name, old, err)
		}
		must.Do(t, os.WriteFile(path, []byte(strings.Replace(string(content), old, text, 1)), 0o644))
	}
	compare := func() (said string, ok bool) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), ".ci/checks/api")
		cmd.Dir = tree
		out, err := cmd.CombinedOutput()
		return string(out), err == nil
	}
	replace("redlock/errors.go", "func RetryAfter(err error)", "func RetryAfter(err error, _ ...int)")
	if said, ok := compare(); ok || !strings.Contains(said, "- ./redlock.RetryAfter: changed from") {
		t.Errorf("the change of a function is not reported:\n%s", said)
	}
	replace("CHANGELOG.md", "\n## [", "\n## [0.2.0]\n\n### Incompatible changes\n\n- RetryAfter\n\n## [")
	if said, ok := compare(); !ok {
		t.Errorf("a change that the changelog names is refused:\n%s", said)
	}
}

// onlyHere makes the file of GoReleaser build for this system alone.
func onlyHere(t *testing.T, path string) {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	for key, value := range map[string]string{
		"goos": runtime.GOOS, "goarch": runtime.GOARCH, "platforms": "linux/" + runtime.GOARCH, "images": testImage,
	} {
		line := regexp.MustCompile(`(?m)^(  [ -] )` + key + `: \[.*\]$`)
		if !line.Match(text) {
			t.Fatalf("%s has no line for %s", path, key)
		}
		text = line.ReplaceAll(text, fmt.Appendf(nil, "${1}%s: [%s]", key, value))
	}
	must.Do(t, os.WriteFile(path, text, 0o644))
}
