//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
)

// reporter is a script that sends the content of a frame to the test every 100 ms, and types the reply into the search
// field.
const reporter = `<script nonce="$1">
addEventListener("load", () => setInterval(() => fetch("/seen", {method: "POST", body: JSON.stringify({
  width: innerWidth, wide: document.documentElement.scrollWidth, text: document.body.innerText,
  cell: Math.round(Math.max(0, ...[...document.querySelectorAll("#masters td")].map((c) => c.clientHeight))),
  html: document.querySelectorAll("b").length, paper: getComputedStyle(document.body).backgroundColor})})
  .then((r) => r.text()).then((text) => {
    const field = document.getElementById("filter");
    if (field.value === text) return;
    field.value = text;
    field.dispatchEvent(new Event("input"));
  }), 100));
</script></html>`

// A screen is the content of one frame.
type screen struct {
	Width, Wide, HTML, Cell int
	Text, Paper             string
}

// A viewer is a browser that shows the page in frames of two widths.
type viewer struct {
	t     *testing.T
	mu    sync.Mutex
	shown map[int]screen // by width
	typed string         // the content of the search field
	wrote chan struct{}
}

// view starts a browser that shows the page of s until the test ends.
func view(t *testing.T, s http.Handler, scheme string) *viewer {
	t.Helper()
	browser := findBrowser(t)
	v := &viewer{t: t, shown: make(map[int]screen), wrote: make(chan struct{}, 1)}
	nonce := regexp.MustCompile(`(?s)<script nonce="(\w+)">.*</html>`)
	mux := http.NewServeMux()
	mux.Handle("/events", s)
	mux.HandleFunc("/frames", func(w http.ResponseWriter, _ *http.Request) {
		for _, width := range []int{400, 1400} {
			fmt.Fprintf(w, `<iframe src="/" style="width:%dpx; height:900px; border:0"></iframe>`, width)
		}
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		page := httptest.NewRecorder()
		s.ServeHTTP(page, r)
		policy := page.Header().Get("Content-Security-Policy")
		w.Header().Set("Content-Security-Policy", strings.Replace(policy, "frame-ancestors 'none'", "", 1))
		w.Header().Set("Content-Type", page.Header().Get("Content-Type"))
		_, _ = w.Write(nonce.ReplaceAllFunc(page.Body.Bytes(), func(all []byte) []byte {
			more := strings.Replace(reporter, "$1", string(nonce.FindSubmatch(all)[1]), 1)
			return append(bytes.TrimSuffix(all, []byte("</html>")), more...)
		}))
	})
	mux.HandleFunc("/seen", func(w http.ResponseWriter, r *http.Request) {
		var one screen
		if text, err := io.ReadAll(r.Body); err == nil && json.Unmarshal(text, &one) == nil {
			v.mu.Lock()
			v.shown[one.Width] = one
			_, _ = io.WriteString(w, v.typed)
			v.mu.Unlock()
			select {
			case v.wrote <- struct{}{}:
			default:
			}
		}
	})
	server := httptest.NewServer(mux)
	cmd := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
		"--user-data-dir="+t.TempDir(), "--window-size=1500,2000", "--blink-settings=preferredColorScheme="+scheme,
		server.URL+"/frames")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		server.CloseClientConnections()
		server.Close()
	})
	return v
}

func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("REDLOCK_BROWSER"), "chromium", "chromium-browser", "google-chrome",
		"chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("needs Chromium or Chrome: install one (Debian: apt-get install chromium), or name its program in " +
		"REDLOCK_BROWSER")
	return ""
}

// sees waits until the frames of both widths show all texts, and logs how long that took.
func (v *viewer) sees(what string, texts ...string) {
	v.t.Helper()
	began, bound := time.Now(), time.After(hang)
	for {
		v.mu.Lock()
		missing, shown := "", v.shown[400].Text
		for _, width := range []int{400, 1400} {
			for _, text := range texts {
				if !strings.Contains(v.shown[width].Text, text) {
					missing = text
				}
			}
		}
		v.mu.Unlock()
		if missing == "" {
			v.t.Logf("%s: the page showed it after %v", what, time.Since(began).Round(10*time.Millisecond))
			return
		}
		select {
		case <-v.wrote:
		case <-bound:
			v.t.Fatalf("%s: the page does not show %q:\n%s", what, missing, shown)
		}
	}
}

// page returns the handler that serves the page of the deployment. token is the password, or "" for none.
func (f *votingDeployment) page(token string) http.Handler {
	f.t.Helper()
	return (&webServer{token, f.looker()}).handler()
}

// looker returns a webLooker of the deployment.
func (f *deployment) looker() *webLooker {
	f.t.Helper()
	masters := redlock.Configuration{Masters: f.urls}
	c := &configfile.Config{Configuration: masters, Prefix: "redlock"}
	l, err := new(deploymentFlags).open(c, observer)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.t.Cleanup(func() { cancel(); l.close() })
	return newWebLooker(ctx, l)
}

// In a browser, the page shows what happens to the masters and the locks, at any width, with a light or dark
// background.
func TestPageShowsFaults(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	v := view(t, f.page(""), "1")
	v.sees("the start", "Locks can be acquired: 3 of 3 masters vote, 2 are needed, so 1 of them may fail",
		"No client holds a name", "None seen")
	const name = "<b>orders</b>"
	// The page sees a loss if it looks while less than half of the TTL is left; on a busy machine it looks rarely.
	holder := f.start("run", "--label", "web-1", "--ttl", "12s", name, "--", "sh", "-c", "echo have it; read x")
	holder.hear("have it")
	v.sees("a lock", name, "web-1")
	waiter := f.start("run", "--label", "web-2", name, "--", "sh", "-c", "read x")
	v.sees("a waiter", "web-2 for ")
	waiter.signal(syscall.SIGTERM)
	waiter.ends(128+int(syscall.SIGTERM), "")

	// A name that cannot be read is quoted as by the command; the end of a long name is shown on demand.
	odd := "evil\u202ename\x1b" + strings.Repeat(" and so on", 10)
	if k := f.start("run", "--label", "web-3", odd, "--", "sh", "-c", "echo have it; read x"); true {
		k.hear("have it")
		v.sees("an odd name", `"evil\u202ename\x1b and so on and`, "…", "web-3")
		v.mu.Lock()
		for _, width := range []int{400, 1400} {
			if text := v.shown[width].Text; strings.Contains(text, odd) || strings.Count(text, "and so on") > 6 {
				t.Errorf("at %d px the page shows the whole name:\n%s", width, text)
			}
			if high := v.shown[width].Cell; high > 120 {
				t.Errorf("at %d px a cell of a master is %d px high", width, high)
			}
		}
		v.mu.Unlock()
		k.signal(syscall.SIGTERM)
		k.ends(128+int(syscall.SIGTERM), "")
	}

	f.kill(0)
	v.sees("a dead master", "2 of 3 masters vote, 2 are needed, so none of them may fail", "down", "connection refused",
		"fix: start the server; its log shows why it stopped")
	holder.signal(syscall.SIGKILL)
	v.sees("a lost lock", `"`+name+`" was lost: "web-1" did not extend it in time, token `)
	f.do(1, "CONFIG", "SET", "maxmemory", "1")
	v.sees("a full master", "No lock can be acquired: 1 of 3 masters vote, 2 are needed", "failing",
		"OOM command not allowed")
	f.looks(v, "rgb(255, 255, 255)")
	dark := view(t, f.page(""), "0")
	dark.sees("the start, dark", "No lock can be acquired")
	f.looks(dark, "rgb(20, 22, 26)")
}

// The page agrees with status about masters that refuse locks: writes, a script, or a command in one. What they refuse
// to its own probe locks is not shown as a refusal of clients. If it is read-only, it writes nothing.
func TestPageSeesRefusedLocks(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	w, reader := f.looker(), f.looker()
	reader.readOnly = true
	sees := func(w *webLooker, what, state string) {
		t.Helper()
		var m webMaster
		if !redistest.Until(func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.look()
			m = w.last.Masters[1]
			return m.State == state && m.Votes == (state == "voting") && strings.Contains(m.Error, what)
		}) {
			t.Fatalf("the page shows %+v, want %s and %q", m, state, what)
		}
	}
	for _, c := range []struct {
		what          string
		fault, healed []any
	}{
		{"OOM", []any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}},
		{"NOREPLICAS", []any{"CONFIG", "SET", "min-replicas-to-write", "1"},
			[]any{"CONFIG", "SET", "min-replicas-to-write", "0"}},
		{"evalsha", []any{"ACL", "SETUSER", "default", "-evalsha"}, []any{"ACL", "SETUSER", "default", "+evalsha"}},
		{"run this command", []any{"ACL", "SETUSER", "default", "-hset"}, []any{"ACL", "SETUSER", "default", "+hset"}},
	} {
		sees(w, "", "voting")
		f.do(1, c.fault[0].(string), c.fault[1:]...)
		sees(w, c.what, "failing")
		sees(w, c.what, "failing")
		sees(reader, "", "voting")
		f.do(1, c.healed[0].(string), c.healed[1:]...)
	}
	sees(w, "", "voting")
	if slices.ContainsFunc(w.news, func(e webEvent) bool { return strings.Contains(e.Text, "refuses") }) {
		t.Errorf("the page shows the refusals of its probe locks: %+v", w.news)
	}
}

// A master with as many clients as it allows still votes for those that are connected, such as the page, which says
// that others cannot connect. To them, check says that this is their answer.
func TestPageSeesTooManyClients(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	admin := redistest.Dial(t, f.servers[1])
	w := f.looker()
	if err := w.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Do("CONFIG", "SET", "maxclients", 1); err != nil {
		t.Fatal(err)
	}
	v, list := w.masters(t.Context())
	if m := list[1]; !v.CanLock || v.Spare != 1 || !m.Votes || !strings.Contains(m.Error, "maxclients") ||
		m.Fix != transport.StepClients {
		t.Errorf("the page shows %+v, %+v", v, m)
	}
	f.call(exitDanger, "tolerated by clients that connect now; those that are connected keep its vote\n", "check")
}

// A client with the documented rights asks for settings that it may not read. Only refusals of other commands are
// shown.
func TestPageShowsNoOptionalRefusals(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	w, login := f.looker(), []any{"ACL", "SETUSER", "lock", "on", ">secret"}
	for word := range strings.FieldsSeq(scripts.Prefix("redlock").Rule()) {
		login = append(login, word)
	}
	redistest.Do(t, f.servers[0], login...)
	refusal := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.look()
		return slices.ContainsFunc(w.news, func(e webEvent) bool { return strings.Contains(e.Text, "NOPERM") })
	}
	if !redistest.Until(func() bool { return !refusal() && w.states["0"+f.servers[0].Addr()].refused != nil }) {
		t.Fatalf("the page does not read the statistics: %+v", w.states)
	}
	urls := slices.Clone(f.urls)
	urls[0] = "redis://lock:secret@" + f.servers[0].Addr()
	if !redistest.Until(func() bool {
		command(append([]string{"status"}, urls...)...)
		return strings.Contains(fmt.Sprintf("%s", f.do(0, "INFO", "errorstats")), "errorstat_NOPERM")
	}) {
		t.Error("the client was refused nothing")
	}
	if refusal() {
		t.Errorf("the page shows the refusal of a right that is not documented: %+v", w.news)
	}
	f.do(0, "ACL", "SETUSER", "lock", "-evalsha")
	if !redistest.Until(func() bool {
		command(append([]string{"status"}, urls...)...)
		return refusal()
	}) {
		t.Errorf("the page does not show the refusal of EVALSHA: %+v", w.news)
	}
}

// holdMany locks names until the test ends.
func (f *votingDeployment) holdMany(n int, name string) {
	f.t.Helper()
	l := f.locker()
	for i := range n {
		if _, err := l.Lock(f.t.Context(), fmt.Sprintf(name, i), redlock.WithTTL(20*time.Second)); err != nil {
			f.t.Fatal(err)
		}
	}
}

// The search field of the page searches all names, not only those that the page shows.
func TestPageSearchesAllNames(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	f.holdMany(webNames+20, "order:%04d")
	v := view(t, f.page(""), "1")
	v.sees("the first names", "200 of 220 are shown", "order:0199")
	v.mu.Lock()
	v.typed = "er:021"
	if text := v.shown[400].Text; strings.Contains(text, "order:0200") {
		t.Errorf("the page shows more than %d names:\n%s", webNames, text)
	}
	v.mu.Unlock()
	v.sees("a name beyond the first ones", "order:0210", "order:0219", ": 10 names contain this text.")
	v.mu.Lock()
	v.typed = "nothing"
	v.mu.Unlock()
	v.sees("no match", "No name contains this text.")
	f.looks(v, "rgb(255, 255, 255)")
}

// However many names and viewers there are, a look at the masters reads a limited number of names.
func TestPageReadsFewNames(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	const all = 2*webSight + 100
	f.holdMany(all, "order:%04d")
	w := f.looker()
	look := func(filter string) (s webState) {
		w.mu.Lock()
		w.looked = time.Time{}
		w.mu.Unlock()
		if err := json.Unmarshal(w.state(filter), &s); err != nil {
			t.Fatal(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.sight) > webSight {
			t.Fatalf("a look has read %d names, want at most %d", len(w.sight), webSight)
		}
		return s
	}
	if !redistest.Until(func() bool { return look("").Held == all }) {
		t.Fatal("the scan does not find all names")
	}
	var leave []func()
	for i := range webFilters {
		filter := fmt.Sprintf(":%02d", i)
		done, ok := w.use(filter)
		if !ok {
			t.Fatalf("the filter %d is refused", i)
		}
		leave = append(leave, done)
		s := look(filter)
		if want := min(100, max(0, all-100*i)); s.Filter != filter || s.Matches != want || want > 0 && len(s.Names) == 0 {
			t.Errorf("of the filter %q, %d names are shown and %d match, want %d", filter, len(s.Names), s.Matches, want)
		}
		for _, n := range s.Names {
			if !strings.Contains(n.Name, filter) {
				t.Errorf("the filter %q shows %q", filter, n.Name)
			}
		}
	}
	if s := look(""); len(s.Names) != webNames || s.Names[0].Name != "order:0000" {
		t.Errorf("without a filter, %d names are shown", len(s.Names))
	}
	if _, ok := w.use("one more"); ok {
		t.Error("there may be any number of filters")
	}
	get := func(filter string) int {
		r := httptest.NewRequest("GET", "/events?filter="+filter, nil)
		r.Host = "localhost"
		answer := httptest.NewRecorder()
		(&webServer{looker: w}).handler().ServeHTTP(answer, r)
		return answer.Code
	}
	if one, two := get("more"), get(strings.Repeat("x", webFilterSize+1)); one != 503 || two != 400 {
		t.Errorf("one filter too many gets the status %d, and a long one %d", one, two)
	}
	for _, done := range leave {
		done()
	}
	if len(w.filters) > 0 {
		t.Errorf("%d filters are left", len(w.filters))
	}
}

// looks fails the test if a frame is wider than its window, if a name was inserted as HTML, or if the background does
// not have the color paper.
func (f *votingDeployment) looks(v *viewer, paper string) {
	f.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, width := range []int{400, 1400} {
		if s := v.shown[width]; s.Wide > width || s.HTML > 0 || s.Paper != paper {
			f.t.Errorf("the frame of %d px shows %+v, want no overflow, no HTML from names, and the background %s", width,
				s, paper)
		}
	}
}

// If the user of redlock web --read-only has no right to write, the page still shows the votes, the names, and the
// remaining time of a quarantine.
func TestPageOnlyReads(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	f.do(2, "DEL", "redlock:admission")
	holder := f.start("run", "a", "--", "sh", "-c", "echo have it; read x") // starts the quarantine
	holder.hear("have it")
	for i, u := range f.urls {
		f.do(i, "ACL", "SETUSER", "reader", "on", ">secret", "~*", "&*", "+@all", "-@write")
		f.urls[i] = strings.Replace(u, "redis://", "redis://reader:secret@", 1)
	}
	looker := f.looker()
	looker.readOnly = true
	s := httptest.NewServer((&webServer{"", looker}).handler())
	defer s.Close()
	r, err := http.Get(s.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines, last := bufio.NewScanner(r.Body), ""
	for began := time.Now(); time.Since(began) < hang && lines.Scan(); {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		var state webState
		if !ok || json.Unmarshal([]byte(text), &state) != nil {
			continue
		}
		last = text
		if m := state.Masters[2]; state.Class == "risk" && m.State == "quarantine" && m.Left > 0 && !m.Votes &&
			len(state.Names) == 1 && state.Names[0].Name == "a" {
			return
		}
	}
	t.Errorf("the page does not show the quarantine or the name: %v: %s", lines.Err(), last)
}

// Without a password, only requests to names of this host are answered. With a password, only requests that contain the
// password are answered. No request writes anything.
func TestPageAccess(t *testing.T) {
	t.Parallel()
	open, closed := (&webServer{}).handler(), (&webServer{token: "0123456789abcdef"}).handler()
	for _, c := range []struct {
		to                           http.Handler
		method, host, path, password string
		want                         int
	}{
		{open, "GET", "localhost:8600", "/", "", 200},
		{open, "GET", "[::1]:8600", "/", "", 200},
		{open, "GET", "evil.example:8600", "/", "", 403},
		{open, "GET", "evil.example:8600", "/events", "", 403},
		{open, "POST", "localhost", "/", "", 405},
		{open, "GET", "localhost", "/else", "", 404},
		{closed, "GET", "redis.example:8600", "/", "", 401},
		{closed, "GET", "localhost", "/events", "", 401},
		{closed, "GET", "redis.example:8600", "/", "0123456789abcdeX", 401},
		{closed, "GET", "redis.example:8600", "/", "0123456789abcdef", 200},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Host = c.host
		if c.password != "" {
			r.SetBasicAuth("me", c.password)
		}
		w := httptest.NewRecorder()
		if c.to.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("the request %+v got the status %d", c, w.Code)
		}
		policy := w.Header().Get("Content-Security-Policy")
		if c.want == 200 && (!strings.HasPrefix(policy, "default-src 'none'; script-src 'nonce-") ||
			strings.Contains(policy, "http")) {
			t.Errorf("the content security policy is %q", policy)
		}
	}
}

// redlock web prints the address of the page. It also prints a password, unless only this host can reach the page. A
// signal ends the command.
func TestWebPrintsItsAddress(t *testing.T) {
	f := newVotingDeployment(t)
	p := f.start("web", "--listen", "127.0.0.1:0")
	p.hear("redlock web: http://127.0.0.1:")
	p.hear("/\n")
	p.signal(syscall.SIGTERM)
	p.ends(0, "")
	p = f.start("web", "--listen", ":0")
	p.hear(" with any user name and the password ")
	p.signal(syscall.SIGTERM)
	p.ends(0, "")
	f.start("web", "--listen", "192.0.2.1:1").ends(exitDanger, "redlock web: listen tcp")
	t.Setenv(webTokenVariable, "short")
	f.start("web").ends(exitUsage, "has fewer than 16 characters")
}
