package transport

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/transport/wire"
)

// once returns a function that writes text. After the write the server continues to read, and writes the text again at
// the next command.
func once(text string) func(io.Writer) bool {
	return func(w io.Writer) bool {
		_, err := io.WriteString(w, text)
		return err == nil
	}
}

// forever returns a function that writes begin once, and then text repeatedly, with a pause before each text.
func forever(begin, text string, pause time.Duration) func(io.Writer) bool {
	return func(w io.Writer) bool {
		_, err := io.WriteString(w, begin)
		for more := []byte(text); err == nil; { // converted only once, because allocations of the server are counted, too
			if pause > 0 {
				pass(pause)
			}
			_, err = w.Write(more)
		}
		return false
	}
}

// hostilities lists texts that a server may send instead of a reply. A function returns false if the connection must
// be closed.
var hostilities = map[string]func(io.Writer) bool{
	"a bulk string of a gigabyte": once("$999999999\r\n"),
	"a string just too large":     forever("$1048577\r\n", strings.Repeat("x", 4096), 0),
	"an array of 100 million":     once("*99999999\r\n"),
	"arrays in arrays":            once(strings.Repeat("*1\r\n", 100_000)),
	"large strings in an array":   forever("*32\r\n", bulk(strings.Repeat("x", 200_000)), 0),
	"long lines in arrays": forever("*32\r\n", "*8\r\n"+strings.Repeat("+"+strings.Repeat("x",
		16_000)+"\r\n", 8), 0),
	"an array just too large":         forever("*33\r\n", "$1\r\nx\r\n", 0),
	"a negative length":               once("$-7\r\n"),
	"a length with a million digits":  once("$" + strings.Repeat("9", 1<<20)),
	"a line without an end":           forever("+", strings.Repeat("x", 4096), 0),
	"an error without an end":         forever("-ERR ", strings.Repeat("x", 4096), 0),
	"another protocol":                once("HTTP/1.1 400 Bad Request\r\n\r\n"),
	"pushes without end":              forever("", ">2\r\n+message\r\n+x\r\n", 0),
	"messages without end":            forever("", "*3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$1\r\nx\r\n", 0),
	"numbers without end":             forever("", ":7\r\n", 0),
	"errors without end":              forever("", "-ERR no\r\n", 0),
	"half a string":                   once("$100\r\nhalf"),
	"half an array":                   once("*6\r\n$3\r\nabc\r\n$3"),
	"a string byte by byte":           forever("$1000000\r\n", "x", 20*time.Millisecond),
	"a line byte by byte":             forever("+", "x", 20*time.Millisecond),
	"elements one by one":             forever("*32\r\n", ":1\r\n", 100*time.Millisecond),
	"half a string, and then the end": func(w io.Writer) bool { _, _ = io.WriteString(w, "$100\r\nhalf"); return false },
	"nothing":                         once(""),
	"the end":                         func(io.Writer) bool { return false },
	"null":                            once("$-1\r\n"),
	"a null array":                    once("*-1\r\n"),
	"an array of nulls":               once("*6\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n"),
	"an array of nothing":             once("*0\r\n"),
	"an array instead of a number":    once("*2\r\n*1\r\n:1\r\n:1\r\n"),
	"an error inside an array":        once("*2\r\n:2\r\n-ERR no\r\n"),
	"a number of more than 64 bits":   once(":99999999999999999999999\r\n"),
	"an error without a text":         once("-\r\n"),
}

// If a server sends any of these texts instead of any reply, each call to the server gets, within the timeout, an
// error or the value in the text. The memory use is bounded, the server is redialled with pauses, and the other master
// is not affected.
func TestHostileServerAffectsOwnCallsOnly(t *testing.T) {
	for name, say := range hostilities {
		t.Run(name, func(t *testing.T) {
			for _, at := range []string{"INFO", "SCRIPT", "EVALSHA"} {
				synctest.Test(t, func(t *testing.T) { sufferHostility(t, at, say) })
			}
		})
	}
}

func sufferHostility(t *testing.T, at string, say func(io.Writer) bool) {
	ms := newEars(2)
	p := open(t, ms.urls(), WithDialer(ms.dial))
	waitUp(t, p)
	settle(time.Second)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h, begun := ms[0], ms[0].dialled()
	h.set(func() {
		h.on = func(w io.Writer, cmd []string) (bool, error) {
			if cmd[0] == at && !say(w) {
				return true, io.EOF
			}
			return cmd[0] == at, nil
		}
	})
	h.cut()
	for range 60 { // half a minute, with calls and heartbeats
		for i := range 2 {
			askOne(t, p, i)
		}
		settle(500 * time.Millisecond)
	}
	dials := h.dialled() - begun
	h.set(func() { h.on = nil })
	h.cut()
	runtime.ReadMemStats(&after)
	if dials > 60 {
		t.Errorf("%s: there were %d connections in half a minute", at, dials)
	}
	// The buffer for a reply has at most MaxReply bytes. While a line is read, its buffer grows by doubling.
	if most := uint64(dials+1) * 2 * wire.MaxReply; after.TotalAlloc-before.TotalAlloc > most {
		t.Errorf("%s: %d connections allocated %d bytes, more than %d", at, dials, after.TotalAlloc-before.TotalAlloc,
			most)
	}
	settle(5 * time.Second)
	if _, err := call(t, p, 0, inspect("x"), Condition{}); err != nil {
		t.Errorf("%s: the master did not come up again: %v", at, err)
	}
	if event := state(p, 1); event.Session != 1 {
		t.Errorf("%s: the other master was affected: %+v", at, event)
	}
	_ = p.Close()
	settle(time.Second)
}

// A slot is a Receiver with room for one answer.
type slot chan answer

func (s slot) Reply(master int, value any, err error) { s <- answer{master, value, err} }

// askOne sends one call. The hostile server may send any reply. The reply of the other server must come immediately.
func askOne(t *testing.T, p *Transport, i int) {
	t.Helper()
	start, to := time.Now(), make(slot, 1)
	var a answer
	if err := p.Send(i, inspect("x"), Condition{}, to); err != nil {
		a.err = err
	} else {
		a = <-to
	}
	took := time.Since(start)
	if i == 1 && (a.err != nil || a.value != int64(1) || took != 0) {
		t.Errorf("the other master replied %v, %v after %v", a.value, a.err, took)
	}
	if took > DefaultTimeout {
		t.Errorf("the call was answered only after %v", took)
	}
	var e *Error
	if a.err != nil && !errors.As(a.err, &e) {
		t.Errorf("the error is not an *Error: %v", a.err)
	}
}
