package client

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

var sampleHandles = []Exported{
	{prefix: "redlock", name: "orders:42", id: "0b5ac9a4-7d2c-4a53-9f0e-5a8d6a6f1e11:7", token: 1_700_000_000_000_000},
	{prefix: "p", name: "n", id: "i", token: 0},
	{prefix: "p", name: "nn", id: "i", token: 1},
	{prefix: "p", name: "nnn", id: "i", token: scripts.MaxBallot},
	{prefix: "grün", name: "{}\x00ÿ\n", id: ":", token: 300},
}

func refuses(t *testing.T, what, text string) {
	t.Helper()
	if h, err := ReadHandle(text); !errors.Is(err, fault.ErrInvalid) || h != (Exported{}) {
		t.Errorf("%s: ReadHandle of %q returned %+v, %v", what, text, h, err)
	}
}

// A forged handle, even with a valid checksum, must satisfy the same bounds as an option.
func TestMadeUpHandleIsRefused(t *testing.T) {
	seal := func(b []byte) string {
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
		return handlePrefix + base64.RawURLEncoding.EncodeToString(b)
	}
	body := func(fields ...string) []byte { return fmt.Appendf(nil, "%q %q %q ", fields[0], fields[1], fields[2]) }
	if got, err := ReadHandle(seal(append(body("p", "n", "i"), '5'))); err != nil || got.token != 5 {
		t.Fatalf("ReadHandle of a well-formed handle returned %+v, %v", got, err)
	}
	for what, text := range map[string]string{
		"nothing":                "",
		"no name":                `"p" 5`,
		"no id":                  `"p" "n" 5`,
		"no token":               `"p" "n" "i" `,
		"token beyond 64 bits":   `"p" "n" "i" 99999999999999999999`,
		"token in long form":     `"p" "n" "i" 05`,
		"negative token":         `"p" "n" "i" -5`,
		"token of 2^53":          `"p" "n" "i" 9007199254740992`,
		"line break at the end":  "\"p\" \"n\" \"i\" 5\n",
		"two spaces":             `"p"  "n" "i" 5`,
		"unfinished text":        `"p" "n" "i 5`,
		"text with other escape": `"\x70" "n" "i" 5`,
		"empty prefix":           string(body("", "n", "i")) + "5",
		"brace in the prefix":    string(body("p{", "n", "i")) + "5",
		"long prefix":            string(body(strings.Repeat("p", 1<<10+1), "n", "i")) + "5",
		"empty name":             string(body("p", "", "i")) + "5",
		"long name":              string(body("p", strings.Repeat("n", scripts.MaxName+1), "i")) + "5",
		"empty id":               string(body("p", "n", "")) + "5",
		"long id":                string(body("p", "n", strings.Repeat("i", 513))) + "5",
	} {
		t.Run(what, func(t *testing.T) { refuses(t, what, seal([]byte(text))) })
	}
}

func TestHandleOfAnotherVersionIsRefused(t *testing.T) {
	body := strings.TrimPrefix(sampleHandles[0].String(), handlePrefix)
	for _, prefix := range []string{"", "redlock2.", "redlock1", "Redlock1.", " redlock1."} {
		refuses(t, "prefix "+prefix, prefix+body)
	}
	_, err := ReadHandle("redlock2." + body)
	if err == nil || !strings.Contains(err.Error(), handlePrefix) {
		t.Errorf("%v does not mention the prefix of handles", err)
	}
}

// The text of an error is bounded for any input, and never contains a whole handle, since any client with the handle
// can import the lock.
func TestRefusalDoesNotRepeatHandle(t *testing.T) {
	text := sampleHandles[0].String()
	_, err := ReadHandle(text + "!")
	if err == nil || strings.Contains(err.Error(), text) || len(err.Error()) > 300 {
		t.Errorf("the error is %v, want a short one without the handle", err)
	}
}

// ReadHandle accepts only the text that String returns, so each handle has exactly one text.
func FuzzHandle(f *testing.F) {
	for _, h := range sampleHandles {
		text := h.String()
		f.Add(text)
		f.Add(text[:len(text)-1])
		f.Add(text + "\n")
	}
	f.Add("")
	f.Add(handlePrefix)
	f.Add(handlePrefix + "AAAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ReadHandle(text)
		if err != nil {
			if !errors.Is(err, fault.ErrInvalid) || h != (Exported{}) {
				t.Fatalf("ReadHandle of %q returned %+v, %v", text, h, err)
			}
			return
		}
		if h.String() != text {
			t.Fatalf("%q is accepted, and written as %q", text, h.String())
		}
		if h.prefix == "" || h.name == "" || h.id == "" || h.token < 0 || h.token > scripts.MaxBallot {
			t.Fatalf("ReadHandle of %q returned %+v", text, h)
		}
	})
}

// Each handle of a valid lock is parsed to the same lock again, and handles of other locks are refused.
func FuzzHandleRoundTrip(f *testing.F) {
	f.Add("redlock", "orders:42", "a-b-c:7", int64(7))
	f.Add("p", "\xff\x00{}", "i", int64(scripts.MaxBallot))
	f.Fuzz(func(t *testing.T, prefix, name, id string, token int64) {
		want := Exported{prefix: prefix, name: name, id: id, token: token}
		fit := scripts.CheckPrefix(prefix) == nil && scripts.CheckName(name) == nil && id != "" && len(id) <= 512 &&
			token >= 0 && token <= scripts.MaxBallot
		if got, err := ReadHandle(want.String()); (err == nil) != fit || fit && got != want {
			t.Fatalf("ReadHandle returned %+v, %v; want %+v, valid: %v", got, err, want, fit)
		}
	})
}
