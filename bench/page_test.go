package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fullReport returns a report with figures for every part of a page.
func fullReport() *report {
	r := madeReport()
	for i, who := range []string{nameLibrary, nameFloor, nameRedsync, nameIdeal} {
		took := float64(i + 1)
		for _, m := range []metric{mP90, mP99} {
			r.Figures.add(scenarioPairs, latencyCase(opPair, 1), who, m, 700*took)
			r.Figures.add(scenarioPairs, latencyCase(opPair, 64), who, m, 112_345*took)
			r.Figures.add(scenarioPairs, rateCase(512), who, mRate, 250_000/took)
		}
		for _, s := range []shape{eightPaused, twoInTurns} {
			r.setCurve(newCurve(curveWaits, s.String(), who, []float64{50, 90, 99}, []float64{took, 3 * took, 3.1}))
			r.Figures.add(scenarioContention, s.String(), who, mHandOff, 500*took)
		}
		for _, f := range everyFault() {
			r.setCurve(newCurve(curveFault, f.String(), who, []float64{-100, 1, 500}, []float64{0.2, 90 * took, 0.3}))
		}
	}
	r.Targets = targetsOf(r.Figures)
	return r
}

func writtenPage(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	if err := writePage(&out, fullReport(), true); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The page must be self-contained, so that it can be copied as one file.
func TestPageLoadsNothing(t *testing.T) {
	page := writtenPage(t)
	for _, bad := range []string{"<script", "<link", "@import", "src=", "url(", "#0303", "#0101", "e+0"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, want := range []string{
		"Locking and unlocking a name takes 0.2 ms", "redsync: ", "library / row", "one hung", "what safety costs",
		`class="missed"`, "How long does a lock take?", "How many locks a second?",
		"How long do processes wait for the same name?", "What happens when masters fail?",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
}

// The page begins with the result, followed by the warning that the machine was busy. It contains the targets of this
// project only with -check, each missed target with the measured cause.
func TestPageAnswersUser(t *testing.T) {
	r := fullReport()
	r.Busy = "The machine was busy"
	for who, cpu := range map[string]float64{nameLibrary: 71, nameFloor: 47} {
		r.Figures.add(scenarioPairs, rateCase(64), who, mServerCPU, cpu)
	}
	var plain, checked bytes.Buffer
	if err := errors.Join(writePage(&plain, r, false), writePage(&checked, r, true)); err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, text := range []string{
		"<h1>Locking and unlocking", "The machine was busy", "which is not safe", "How long does it take",
	} {
		next := strings.Index(plain.String()[at:], text)
		if next < 0 {
			t.Fatalf("the page does not contain %q after the previous texts", text)
		}
		at += next
	}
	for _, text := range []string{"Targets", "NOT MET", `class="missed"`} {
		if strings.Contains(plain.String(), text) {
			t.Errorf("without -check the page contains %q", text)
		}
	}
	const measured = "the servers&#39; processor time for a pair, in us, is 71, and 47 with floor."
	if !strings.Contains(checked.String(), "Targets of this project") || !strings.Contains(checked.String(), measured) {
		t.Error("with -check the page lacks the targets, or a measured cause")
	}
}

// A page can be written for a run without figures for the plots, and for a run without any figures.
func TestPageWithoutFigures(t *testing.T) {
	for _, r := range []*report{new(report), runOf(mRate, 10, 11)} {
		var out bytes.Buffer
		if err := writePage(&out, r, false); err != nil || !strings.Contains(out.String(), "</html>") {
			t.Errorf("error %v, page:\n%s", err, out.String())
		}
	}
}

// looks is a script that checks the page for visible problems in the browser: sideways scrolling, and text of a plot
// that is clipped or covers other text. It also counts the plots.
const looks = `<script>
addEventListener("load", () => {
  const found = {width: innerWidth, scrolls: document.documentElement.scrollWidth > innerWidth, pictures: 0, bad: []};
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    if (frame.width == 0) continue;
    found.pictures++;
    const seen = [];
    for (const text of svg.querySelectorAll("text")) {
      const at = text.getBoundingClientRect();
      if (at.left < frame.left - 1 || at.right > frame.right + 1 || at.top < frame.top - 1 ||
          at.bottom > frame.bottom + 1 ||
          at.right > innerWidth) found.bad.push("cut off: " + text.textContent);
      for (const other of seen) {
        const wide = Math.min(at.right, other.at.right) - Math.max(at.left, other.at.left);
        const high = Math.min(at.bottom, other.at.bottom) - Math.max(at.top, other.at.top);
        if (wide > 2 && high > 5) found.bad.push(text.textContent + " covers " + other.name);
      }
      seen.push({at: at, name: text.textContent});
    }
  }
  found.paper = getComputedStyle(document.body).backgroundColor;
  parent.postMessage(JSON.stringify(found), "*");
});
</script>`

// framed shows the page in a frame of a given width, because a window of the browser is never narrower than 500 px.
const framed = `<script>addEventListener("message", (e) => { document.title = e.data })</script>
<iframe src="looked.html" style="border:0; width:%dpx; height:900px"></iframe>`

// A real browser shows the page on wide and narrow, light and dark screens. Nothing is clipped, nothing scrolls
// sideways, and the browser logs no errors.
func TestPageInABrowser(t *testing.T) {
	browser := findBrowser(t)
	dir := t.TempDir()
	write := func(name, text string) (url string) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file://" + path
	}
	page := writtenPage(t)
	write("looked.html", strings.Replace(page, "default-src 'none';", "", 1)+looks)
	_, complaints := browse(t, browser, "--enable-logging=stderr", "--dump-dom", write("plain.html", page))
	if strings.Contains(complaints, "Refused to") || strings.Contains(complaints, "CONSOLE") {
		t.Errorf("the browser logs errors: %s", complaints)
	}
	for _, screen := range []struct {
		width  int
		scheme string
		paper  string
	}{{1400, "1", "rgb(255, 255, 255)"}, {800, "1", "rgb(255, 255, 255)"}, {400, "0", "rgb(20, 22, 26)"}} {
		dom, _ := browse(t, browser, "--window-size=1500,900", "--virtual-time-budget=5000",
			"--blink-settings=preferredColorScheme="+screen.scheme, "--dump-dom",
			write("framed.html", fmt.Sprintf(framed, screen.width)))
		_, title, _ := strings.Cut(dom, "<title>")
		title, _, _ = strings.Cut(title, "</title>")
		var found struct {
			Width, Pictures int
			Scrolls         bool
			Bad             []string
			Paper           string
		}
		if err := json.Unmarshal([]byte(html.UnescapeString(title)), &found); err != nil {
			t.Fatalf("the title %q is not the result of the script: %v", title, err)
		}
		if found.Width != screen.width || found.Scrolls || found.Pictures != 4 || len(found.Bad) > 0 ||
			found.Paper != screen.paper {
			t.Errorf("at a width of %d px the page has problems: %+v", screen.width, found)
		}
	}
}

func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("REDLOCK_BROWSER"), "chromium", "chromium-browser", "google-chrome",
		"chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("needs Chromium or Chrome: install one (Debian: apt-get install chromium), or set REDLOCK_BROWSER to " +
		"its path")
	return ""
}

// browse runs the browser without a window and returns its standard output and standard error.
func browse(t *testing.T, browser string, args ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	always := []string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--user-data-dir=" + t.TempDir()}
	cmd := exec.CommandContext(ctx, browser, append(always, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("the browser %s failed: %v: %s", browser, err, errs.String())
	}
	return out.String(), errs.String()
}
