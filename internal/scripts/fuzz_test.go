package scripts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// value decodes bytes to a reply of any form that redigo may return.
func value(b []byte, depth int) (reply any, rest []byte) {
	if len(b) == 0 {
		return nil, nil
	}
	kind, b := b[0], b[1:]
	take := func(n int) []byte {
		n = min(n, len(b))
		piece := b[:n]
		b = b[n:]
		return piece
	}
	switch kind % 6 {
	case 0:
		return nil, b
	case 1:
		n := int64(0)
		for _, c := range take(8) {
			n = n<<8 | int64(c)
		}
		return n, b
	case 2:
		return int64(int8(append(take(1), 0)[0])), b
	case 3:
		return string(take(int(kind) / 6)), b
	case 4:
		return take(int(kind) / 6), b
	}
	list := make([]any, 0, 8)
	for range kind / 6 % 8 {
		var e any
		if depth < 3 {
			e, b = value(b, depth+1)
		}
		list = append(list, e)
	}
	return list, b
}

// Decoding a reply returns an error, or a vote whose values are within their limits.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add([]byte{5 + 6*7, 2, 2, 2, 100, 2, 0, 5 + 6*4, 3 + 6, 'x', 3 + 6, '1', 3 + 6*5, 't', 'o', 'k', 'e', 'n', 3 + 6,
		'7', 2, 0, 3 + 6*2, '1', '2', 2, 9})
	f.Add([]byte{5 + 6*4, 2, 3, 2, 0, 4 + 6*2, '-', '1', 2, 1})
	f.Add([]byte{5 + 6*3, 2, 6, 0, 2, 1})
	f.Add([]byte{5 + 6*7, 5, 2, 1, 3 + 6, '7', 2, 1, 3, 2, 3, 5 + 6, 3 + 6, 'w'})
	f.Add([]byte{5 + 6*4, 2, 1, 3 + 6, 'x', 2, 5, 3 + 6, 'y'})
	f.Fuzz(func(t *testing.T, b []byte) {
		reply, _ := value(b, 0)
		v, err := scripts.DecodeVote(reply)
		if err == nil && (v.Outcome == quorum.Failed || v.Outcome > quorum.OtherKind ||
			v.Fence < 0 || v.Token < 0 || v.Left < -1) {
			t.Fatalf("%v was decoded as %+v", reply, v)
		}
		if h, err := scripts.DecodeHolding(reply); err == nil && h.Fence < 0 {
			t.Fatalf("%v was decoded as %+v", reply, h)
		}
		if a, err := scripts.DecodeAdmission(reply); err == nil && (a.Result < scripts.AdmitDone ||
			a.Result > scripts.AdmitTooEarly) {
			t.Fatalf("%v was decoded as %+v", reply, a)
		}
	})
}

// ParseRecord accepts only texts that String returns.
func FuzzRecord(f *testing.F) {
	for _, seed := range []string{
		"", stamped + "id=a/b/-1 masters=a,b epoch=0 maxttl=30000 quarantine=30000 state=admitted since=7",
		stamped + "id=a/b/7 durable=10.0.0.1:6379 masters=a next=b epoch=2 raised=7 final=1 maxttl=1 quarantine=2 " +
			"state=quarantine since=7",
		"v4 0000000000000000 id=a/b/7 shard=2/3 masters=a%2C epoch=0 maxttl=1 quarantine=2 state=quarantine since=7",
		stamped + "id= epoch=0 maxttl=0 quarantine=0 state=quarantine since=0",
		stamped + "id=a masters= epoch=-2 maxttl=9223372036854775807 quarantine=0 state=quarantine since=0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := scripts.ParseRecord(text)
		if err == nil && (r.String() != text || r.MaxTTL < 0 || r.Quarantine < 0 || r.Since < 0 || r.Epoch < 0) {
			t.Fatalf("%q was parsed as %+v", text, r)
		}
	})
}

// ParseWakeUp accepts only messages of the scripts, and returns all of their content.
func FuzzHint(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "0000000000000077:me:9:\nredlock:{n}", "0000000000000077:me:9:a:b\nredlock:{n\n}",
		"000000000000077:me:9:\nredlock:{n}", "0000000000000077:me:09:\nredlock:{n}",
		"0000000000000077:me:9:\nother:{n}",
		"0000000000000077:me:9:\nredlock:{}", "0000000000000077:me:9\nredlock:{n}",
		"x000000000000077:me:9:\nredlock:{n}", "me:9:a\nredlock:{n}", "me:9:a\nredlock:{n}\n", "me:9r5:a\nredlock:{n}",
		"me:9:a\nredlock:{n}\nrelease", "me:9w5:a\nredlock:{n\nrelease}\nrelease", "me:9:a\nredlock:{n}\nrelease\n",
		"0000000000000077:me:9:\nredlock:{n}\nrelease", "me:9:a\nredlock:{n}\nforced \"web-1\"",
		"me:9:a\nredlock:{n}\nforced \"\"", "me:9:a\nredlock:{n\nforced \"x\"}\nforced \"y\"",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const p = scripts.Prefix("redlock")
		h, ok := p.ParseWakeUp(text)
		if !ok {
			if h != (scripts.WakeUp{}) {
				t.Fatalf("%q was refused, but parsed as %+v", text, h)
			}
			return
		}
		if h.Lease != "" {
			again := scripts.WakeUp{Lease: h.Lease, Name: h.Name, Role: h.Role, Release: h.Release, Forced: h.Forced}
			keys := p.KeysOf(h.Name, h.Role)
			words := p.Notify(&keys, h.Lease, h.Release).Words("", false)
			if h.Forced != "" {
				words = p.NotifyForced(&keys, h.Lease, h.Forced).Words("", false)
			}
			if owner, _, _ := strings.Cut(h.Lease, ":"); h != again || words[1] != p.Inbox(owner) || words[2] != text {
				t.Fatalf("%q was parsed as %+v, and encoded as %q", text, h, words)
			}
			return
		}
		owner, _, _ := strings.Cut(h.Waiter[17:], ":")
		if again := h.Waiter + "\n" + p.Lock(h.Name); again != text || !strings.HasPrefix(h.Waiter[17:],
			fmt.Sprintf("%s:%d:", owner, h.Number)) {
			t.Fatalf("%q was parsed as %+v", text, h)
		}
	})
}
