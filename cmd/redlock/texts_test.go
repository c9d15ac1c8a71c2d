//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// An advisory is a text of the sources or of a document that names commands.
type advisory struct {
	where, text string
	commands    []string // lines for bash, with the addresses of the documents
}

// described are parts of texts that recommend nothing, although they name a command that ends locks.
var described = []string{
	"emptied by `FLUSHALL`;", // what a test does to a cluster
	// How the record of a master comes back.
	"by `FLUSHALL` and `RESTORE`", "by `DEBUG RELOAD` of", "`DEBUG RELOAD`, or `SWAPDB` with", "(`SWAPDB`)",
}

// The texts are found, not listed: every string constant and package documentation of the library, every paragraph,
// table row and block of the documents. A text with a command that the test cannot fill in fails the test.
func advisories(t *testing.T) (list []advisory) {
	t.Helper()
	add := func(where, text string, commands []string) {
		if len(commands) == 0 {
			return
		}
		if i := slices.IndexFunc(list, func(a advisory) bool { return slices.Equal(a.commands, commands) }); i >= 0 {
			list[i].where += ", " + where
			return
		}
		list = append(list, advisory{where, text, commands})
	}
	for _, one := range textsOfRepository(t) {
		for _, part := range described {
			one.text = strings.ReplaceAll(one.text, part, "")
		}
		var commands []string
		var err error
		if one.shell {
			commands, err = shellLines(one.text)
		} else {
			commands, err = commandsIn(one.text)
		}
		if err != nil {
			t.Errorf("%s: %v: teach the test what it means: %s", one.where, err, one.text)
		}
		add(one.where, one.text, commands)
	}
	return list
}

// A passage is a text of the repository. A shell passage is a block of lines for a shell.
type passage struct {
	where, text string
	shell       bool
}

func textsOfRepository(t *testing.T) (list []passage) {
	t.Helper()
	const root = "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if slices.Contains([]string{".git", "verify", "bench", "integration", "examples"}, name) || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		case strings.HasSuffix(name, "_test.go"), name == "CHANGELOG.md":
			return nil
		}
		switch filepath.Ext(name) {
		case ".go":
			list = append(list, passagesOfGo(t, name, path)...)
		case ".md":
			list = append(list, passagesOfDocument(t, name, path)...)
		case ".yml", ".yaml", ".html", ".json":
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			list = append(list, passage{where: name, text: string(text)})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// passagesOfGo returns the string constants of a file, with concatenations as one text, and, of doc.go, the comments.
func passagesOfGo(t *testing.T, name, path string) (list []passage) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(name) == "doc.go" {
		for _, group := range file.Comments {
			list = append(list, passage{where: name, text: group.Text()})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, ok := constantText(e)
		if ok && strings.Contains(text, " ") {
			where := fmt.Sprintf("%s:%d", name, set.Position(n.Pos()).Line)
			for part := range strings.SplitSeq(text, "\n\n") {
				list = append(list, passage{where: where, text: part})
			}
		}
		return !ok
	})
	return list
}

// constantText returns the text of a literal or of a concatenation, without its parts that are not literals.
func constantText(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		x, first := constantText(e.X)
		y, second := constantText(e.Y)
		return x + y, e.Op == token.ADD && (first || second)
	}
	return "", false
}

func passagesOfDocument(t *testing.T, name, path string) (list []passage) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	heading := name
	for i, part := range strings.Split("\n"+string(page), "\n```") {
		if i%2 == 1 {
			kind, block, _ := strings.Cut(part, "\n")
			if kind == "sh" || kind == "" {
				list = append(list, passage{where: heading, text: block, shell: true})
			}
			continue
		}
		for _, text := range regexp.MustCompile(`\n\n|\n\||\n- |\n\d+\. `).Split(part, -1) {
			if title, ok := strings.CutPrefix(strings.TrimSpace(text), "#"); ok {
				heading = name + ": " + strings.Trim(title, "# ")
			}
			list = append(list, passage{where: heading, text: text})
		}
	}
	return list
}

// commandNames matches the names of the subcommands.
func commandNames() string {
	var names []string
	for _, c := range rootCommand(&app{}).Commands() {
		names = append(names, c.Name())
	}
	slices.Sort(names)
	return strings.Join(names, "|")
}

// redisHeads matches the first words of the commands of Redis that texts recommend.
const redisHeads = `CONFIG SET|ACL SETUSER|CLIENT KILL|REPLICAOF|SCRIPT [A-Z]+|BGSAVE|SENTINEL SET|SELECT|DEL|UNLINK|` +
	`FLUSHALL|FLUSHDB|SHUTDOWN|RESTORE|DEBUG|SWAPDB|SLOWLOG`

var (
	// A command within prose ends at the first word that is neither a flag, nor an argument in capitals or digits.
	inProse = regexp.MustCompile(`\bredlock (` + commandNames() + `|%\[1\]s)\b` +
		`((?: (?:--?[a-z][a-z-]*|%(?:\[\d\])?[a-z]|[A-Z]{3,}|\[[^\]\s]*\]|rediss?://[0-9.:]+|[a-z]+\.json|\d+[smh]|` +
		`\$[A-Z0-9]+|/|nightly-report|deploy|job)(?:\.\.\.)?)*)`)
	shellLine   = regexp.MustCompile(`(?m)^  +(?:[a-z]+=\$\()?redlock (?:` + commandNames() + `)\b.*$`)
	quotedRedis = regexp.MustCompile("`((?:" + redisHeads + ")(?: [^`]+)?)`")
	bareRedis   = regexp.MustCompile(`(?:^|[^A-Za-z` + "`" + `-])((?:CONFIG SET|ACL SETUSER|REPLICAOF NO ONE)` +
		`(?: (?:%[a-z]|[+~&][^\s;,)]+|on|[a-z-]{5,}))*)`)
	redisCLI = regexp.MustCompile(`redis-cli [^` + "`;\n" + `#]+`)
	forced   = regexp.MustCompile(`redlock (admit|set|release)\b.*--force`)
)

// commandsIn returns the commands in a text, filled in.
func commandsIn(text string) (commands []string, err error) {
	add := func(list ...string) {
		for _, c := range list {
			filled, failed := fill(c)
			if err = cmp.Or(err, failed); failed == nil && !slices.Contains(commands, filled) {
				commands = append(commands, filled)
			}
		}
	}
	plain := strings.Join(strings.Fields(text), " ")
	if lines := shellLine.FindAllString(text, -1); lines != nil {
		add(lines...)
	}
	for _, m := range inProse.FindAllStringSubmatch(shellLine.ReplaceAllString(text, ""), -1) {
		if m[1] == "%[1]s" {
			for name := range strings.SplitSeq(commandNames(), "|") {
				add(strings.ReplaceAll(m[0], m[1], name))
			}
			continue
		}
		add(m[0])
	}
	for _, m := range redisCLI.FindAllString(plain, -1) {
		add(m)
	}
	for _, m := range append(quotedRedis.FindAllStringSubmatch(plain, -1), bareRedis.FindAllStringSubmatch(plain, -1)...) {
		if !strings.HasPrefix(m[1], "CONFIG SET %s %s") {
			add("redis " + m[1])
			continue
		}
		for _, setting := range []string{
			"maxmemory-policy noeviction", "maxmemory 200mb", "min-replicas-to-write 0", "appendonly yes", "appendfsync always",
			"no-appendfsync-on-rewrite no",
		} {
			add("redis CONFIG SET " + setting)
		}
	}
	if m := forced.FindStringSubmatch(plain); m != nil { // a flag that the text recommends without its command
		add(map[string]string{
			"admit": "redlock admit --force", "set": "redlock set --raise --force FILE",
			"release": "redlock release --force NAME",
		}[m[1]])
	}
	return commands, err
}

// shellLines returns the lines of a block for a shell that name redlock or Redis, and those that prepare them.
func shellLines(block string) (commands []string, err error) {
	needed := regexp.MustCompile(`redlock|redis-cli|^(` + redisHeads + `)\b`)
	if !needed.MatchString(block) {
		return nil, nil
	}
	for line := range strings.Lines(block) {
		line = strings.TrimSpace(regexp.MustCompile(`\s+# .*`).ReplaceAllString(line, ""))
		switch {
		case regexp.MustCompile(`^(` + redisHeads + `)\b`).MatchString(line):
			line = "redis " + line
		case regexp.MustCompile(`^(go run \./cmd/redlock|redlock|redis-cli|jq|mv|until|handle=|echo)\b`).MatchString(line),
			strings.HasPrefix(line, "handle="):
		default:
			continue
		}
		filled, failed := fill(line)
		err = cmp.Or(err, failed)
		commands = append(commands, filled)
	}
	return commands, err
}

// fills are the values of the placeholders in commands. The first match of a command counts.
var fills = []struct{ pattern, value string }{
	{`go run \./cmd/redlock`, "redlock"},
	{`-u \$URL`, "-u redis://10.0.0.4"},
	{`-p 7101`, "-u redis://10.0.0.1"},
	{`--master (ADDR|%s)`, "--master 10.0.0.2:6379"},
	{`redlock max-ttl --set (%v|DURATION)`, "redlock max-ttl --set 60s"},
	{`--max-ttl %v`, "--max-ttl 30s"},
	{`(redlock set.*) (FILE|%s|VALUE)`, "$1 locks.json"},
	{`-u redis://%s DEL %s:admission`, "-u redis://10.0.0.4 DEL redlock:admission"},
	{`\[?URL(\.\.\.)?\]?`, ""},
	{`\[--set 60s\]`, "--set 60s"},
	{`\[--raise\] \[--finish\]`, "--raise --finish"},
	{`\[--watch\]|\[PREFIX\]`, ""},
	{`--ask\|--force`, "--force"},
	{`SHELL`, "bash"},
	{`HANDLE|\$handle`, "/nowhere/redlock.sock-1"},
	{`\bPID\b`, "$$$$"},
	{`NAME\.\.\.|NAME|LABEL`, "pay"},
	{`-- COMMAND.*|-- java.*`, "-- true"},
	{`redis CONFIG SET %s %d`, "redis CONFIG SET repl-diskless-sync-delay 5"},
	{`redis CONFIG SET repl-backlog-ttl %d`, "redis CONFIG SET repl-backlog-ttl 7200"},
	{`redis CONFIG SET$`, "redis CONFIG SET maxmemory-policy noeviction"},
	{`redis ACL SETUSER %s %s`, "redis ACL SETUSER default +hset"},
	{`redis ACL SETUSER %s`, "redis ACL SETUSER default"},
	{`\+%s`, "+hset"},
	{`redis ACL SETUSER$`, "redis ACL SETUSER default +hset"},
	{`redis SENTINEL SET %s quorum %d`, "redis SENTINEL SET mymaster quorum 2"},
	{`redis SELECT %d`, "redis SELECT 3"},
	{`redis DEL %s`, "redis -n 3 DEL redlock:admission"},
	{`redis-cli --rdb$`, "redis-cli -u redis://10.0.0.1 --rdb /dev/null"},
	{`redis-cli (GET|DEL)`, "redis-cli -u redis://10.0.0.1 $1"},
	{`/usr/local/bin/report`, "true"},
	{`--listen :8600`, "--listen 127.0.0.1:0"},
}

// left matches a placeholder that was not filled in.
var left = regexp.MustCompile(`%[a-z]|%\[|\b(ADDR|FILE|NAME|DURATION|COMMAND|HANDLE|VALUE)\b`)

// fill replaces the placeholders of a command. A command of Redis is for each master.
func fill(command string) (string, error) {
	command = strings.TrimRight(strings.TrimSpace(command), ".,:;")
	for _, f := range fills {
		command = regexp.MustCompile(f.pattern).ReplaceAllString(command, f.value)
	}
	if m := left.FindString(command); m != "" {
		return "", fmt.Errorf("the command %q has the unknown placeholder %s", command, m)
	}
	if words, ok := strings.CutPrefix(command, "redis "); ok {
		words = regexp.MustCompile(`[<>~&*|]\S*`).ReplaceAllString(words, `'$0'`)
		command = "for i in 1 2 3 4 5; do redis-cli -u redis://10.0.0.$i " + words + "; done"
	}
	return strings.Join(strings.Fields(command), " "), nil
}

// heldNames are locked while the texts are followed. They are the names in the documents.
var heldNames = []string{"pay", "nightly-report", "deploy", "job"}

// A scene is a deployment of five masters, and two more servers, with a client that holds a lock.
type scene struct {
	*votingDeployment
	dir      string
	to       *strings.Replacer
	locks    []*redlock.Lock // of a live client
	paused   paused          // the locks of a paused client, or zero
	original string          // the content of locks.json
	records  string
}

// The scenes: how many masters restart empty after the client was paused, or -1 for a live client.
var sceneKinds = map[string]int{
	"beside a held lock":                                    -1,
	"beside a paused holder":                                0,
	"beside a paused holder, a majority has forgotten it":   3,
	"beside a paused holder, all masters have forgotten it": 5,
}

func newScene(t *testing.T, forgotten int) *scene {
	t.Helper()
	d := newDeployment(t, 7, redisproc.Config{})
	all := d.urls
	d.urls = all[:5]
	d.call(exitDone, "5 of 5 masters vote", "admit")
	s := &scene{votingDeployment: &votingDeployment{d, built(t), ""}, dir: t.TempDir()}
	s.config = filepath.Join(s.dir, "locks.json")
	writeJSON(t, s.config, redlock.Configuration{Masters: d.urls})
	var to []string
	for i := range all {
		name := fmt.Sprint("10.0.0.", i+1)
		to = append(to, name+":6379", d.servers[i].Addr(), name, d.servers[i].Addr())
	}
	s.to = strings.NewReplacer(append(to, "redis://10.0.0.$i", `$(echo $M | cut -d' ' -f$i)`)...)
	if forgotten < 0 {
		l := s.locker()
		for _, name := range heldNames {
			k, err := l.Lock(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			s.locks = append(s.locks, k)
		}
	} else {
		s.paused = s.pause(heldNames...)
		for i := range forgotten {
			s.forget(i)
		}
		s.rival(s.urls) // begins the quarantines
		for i := range s.urls {
			if !redistest.Until(func() bool { return s.do(i, "EXISTS", "redlock:admission") == int64(1) }) {
				t.Fatal("a master has not begun its quarantine")
			}
		}
	}
	text, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	s.original, s.records = string(text), s.admissions()
	return s
}

// rival returns another client of the masters with these URLs.
func (s *scene) rival(urls []string) *redlock.Locker {
	s.t.Helper()
	p, err := pool.Open(urls)
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := redlock.New(p, redlock.WithLabel("rival"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _, _ = l.Close(), p.Close() })
	return l
}

// run runs the commands of a text literally, for three seconds each, without a terminal. It returns the output.
func (s *scene) run(a *advisory) (said string) {
	s.t.Helper()
	for _, line := range a.commands {
		ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Second)
		cmd := exec.CommandContext(ctx, "bash", "-c", s.to.Replace(line))
		cmd.Dir = s.dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(s.program)+":"+os.Getenv("PATH"), "XDG_RUNTIME_DIR="+s.dir,
			"REDLOCK_MASTERS="+strings.Join(s.urls, " "), "M="+strings.Join(s.urls, " "),
			"SHARD1="+strings.Join(s.urls[:2], " "), "SHARD2="+s.urls[2], "SHARD3="+strings.Join(s.urls[3:], " "))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Second
		err := cmd.Run()
		cancel()
		said += fmt.Sprintf("$ %s\n%.2000s(%v)\n", line, out.String(), err)
	}
	return said
}

// safe fails the test if a lock has ended, or if another client can get it, now or within half a second. confirmed is a
// name whose lock an operator has ended on purpose.
func (s *scene) safe(a *advisory, said, confirmed string) {
	s.t.Helper()
	lists := [][]string{s.urls}
	if c, err := configfile.Read(s.config); err == nil && len(c.Masters) > 0 && !slices.Equal(c.Masters, s.urls) {
		lists = append(lists, c.Masters)
	}
	for _, urls := range lists {
		l := s.rival(urls)
		for _, name := range heldNames {
			if name == confirmed {
				continue
			}
			ctx, cancel := context.WithTimeout(s.t.Context(), 500*time.Millisecond)
			k, err := l.Lock(ctx, name)
			cancel()
			if err == nil && (s.locks != nil || time.Now().Before(s.paused.until)) {
				s.t.Errorf("%s: there is a second holder of %q, with token %d, after the commands\n%s", a.where, name,
					k.Token(), said)
			}
		}
	}
	for i, k := range s.locks {
		if err := k.Extend(s.t.Context()); heldNames[i] != confirmed && (err != nil || k.Err() != nil) {
			s.t.Errorf("%s: the lock of %q is lost: %v, after the commands\n%s", a.where, k.Name(),
				errors.Join(err, k.Err()), said)
		}
	}
}

// spent reports whether another scene is needed for the next text.
func (s *scene) spent(a *advisory) bool {
	text, _ := os.ReadFile(s.config)
	changed := string(text) != s.original || s.admissions() != s.records
	redis := slices.ContainsFunc(a.commands, func(c string) bool { return strings.Contains(c, "redis-cli") })
	return changed || redis || strings.Contains(fmt.Sprint(a.commands), "--yes") ||
		s.locks == nil && time.Until(s.paused.until) < 15*time.Second
}

// H163: each command that a text of the sources or of a document names is run literally, beside a held lock and beside
// a paused holder. No second holder results, and no held lock ends, unless the command says --force and --yes.
func TestTextsThatNameCommandsAreSafe(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "jq", "redis-cli"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	list := advisories(t)
	if len(list) < 50 {
		t.Errorf("only %d texts name commands", len(list))
	}
	for i, a := range list {
		t.Logf("%d. %s: %s", i+1, a.where, strings.Join(a.commands, " && "))
	}
	if !long.Enabled() { // one of eight
		var some []advisory
		for i := 0; i < len(list); i += 8 {
			some = append(some, list[i])
		}
		list = some
	}
	for kind, forgotten := range sceneKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for rest := list; len(rest) > 0; {
				t.Run(fmt.Sprintf("from %d", len(list)-len(rest)+1), func(t *testing.T) {
					for s := newScene(t, forgotten); len(rest) > 0; {
						a := &rest[0]
						confirmed := ""
						if strings.Contains(fmt.Sprint(a.commands), "release --force --yes") && forgotten < 1 {
							confirmed = "deploy"
						}
						s.safe(a, s.run(a), confirmed)
						if rest = rest[1:]; s.spent(a) {
							return
						}
					}
				})
			}
		})
	}
}

// deletesKeys matches advice to delete keys. A record is a key too, but no lock.
var deletesKeys = regexp.MustCompile(`(?i)\b(?:delete|deleting|remove|del|unlink|flush)\b[^.;|]{0,60}` +
	`\b(?:keys?|locks?|leases?)\b`)

// H163: no error, no finding and no document advises to delete a key that may be a held lock. A text about deleting
// keys says never, or is listed here.
func TestNoTextAdvisesToDeleteALock(t *testing.T) {
	t.Parallel()
	allowed := []string{"never ", ":admission", "the old password", "only while no lock"}
	found := 0
	for _, one := range textsOfRepository(t) {
		plain := strings.Join(strings.Fields(one.text), " ")
		for _, at := range deletesKeys.FindAllStringIndex(plain, -1) {
			part := plain[max(0, at[0]-40):at[1]]
			found++
			if !slices.ContainsFunc(allowed, func(ok string) bool { return strings.Contains(part, ok) }) {
				t.Errorf("%s: %s", one.where, part)
			}
		}
	}
	if found == 0 {
		t.Error("the expression matches no text, not even that with never")
	}
}
