package main

import (
	"bytes"
	"context"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fullReport has something for every part of a page.
func fullReport() *report {
	r := madeReport()
	for _, who := range []string{nameLibrary, nameFloor} {
		r.Parameters.Contenders = append(r.Parameters.Contenders, who)
		r.setCurve(cdf(goroutinesCase(1), who, []time.Duration{100e3, 200e3, 300e3, 400e3, 900e3}))
		r.figures.add(scenarioContention, eightPaused.String(), who, mHolds, 500)
	}
	r.judge()
	return r
}

func writtenPage(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := writeFile(path, fullReport().writePage); err != nil {
		t.Fatal(err)
	}
	return path
}

// The page must be whole by itself: it is put into papers and mails.
func TestPageLoadsNothing(t *testing.T) {
	text, err := os.ReadFile(writtenPage(t))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, bad := range []string{"<script", "<link", "@import", "src=", "url("} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"<svg", "NOT MET", "library / it", nameFloor, "one hung", "a release that publishes"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// A real browser shows the page: its plots are in the document, their colours on the screen, and it has nothing to
// complain about.
func TestPageInABrowser(t *testing.T) {
	browser := findBrowser(t)
	path := writtenPage(t)
	shot := filepath.Join(t.TempDir(), "page.png")
	dom, _ := browse(t, browser, "--dump-dom", "file://"+path)
	if n := strings.Count(dom, "<svg"); n != 4 { // a curve of shares, two rates, one contention
		t.Errorf("the browser's document has %d plots, want 4", n)
	}
	_, complaints := browse(t, browser, "--enable-logging=stderr", "--window-size=1300,2600", "--screenshot="+shot, "file://"+path)
	for _, bad := range []string{"Refused to", "CONSOLE"} {
		if strings.Contains(complaints, bad) {
			t.Errorf("the browser complains: %s", complaints)
		}
	}
	text, err := os.ReadFile(shot)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{nameLibrary, nameFloor} {
		want, n := colourOf(who).(color.RGBA), 0
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				if color.RGBAModel.Convert(img.At(x, y)) == want {
					n++
				}
			}
		}
		if n < 500 {
			t.Errorf("%d pixels have the colour of %s", n, who)
		}
	}
}

func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("REDLOCK_BROWSER"), "chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium or Chrome is installed: install one (Debian: apt-get install chromium), or name its program in REDLOCK_BROWSER")
	return ""
}

// browse runs the browser without a window and returns both of its outputs.
func browse(t *testing.T, browser string, args ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	always := []string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + t.TempDir()}
	cmd := exec.CommandContext(ctx, browser, append(always, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s", browser, err, errs.String())
	}
	return out.String(), errs.String()
}
