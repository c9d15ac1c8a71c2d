package scripts_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/scripts"
)

// value makes a reply as redigo gives it out of bytes: one that is decoded must not come to harm by any shape.
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

// Whatever a master answers, decoding gives an error, or a vote within its bounds.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add([]byte{5 + 6*4, 2, 2, 2, 100, 3 + 6*3, '1', '2', '3', 1, 0, 6, 10, 24, 24, 24, 24, 24})
	f.Add([]byte{5 + 6*3, 2, 3, 4 + 6*2, '-', '1', 2, 1})
	f.Add([]byte{5 + 6*3, 2, 6, 0, 2, 1})
	f.Add([]byte{5 + 6*6, 3 + 6*4, 'a', ':', '1', ' ', 3 + 6, '1', 2, 1, 3 + 6, '7', 2, 1, 3})
	f.Add([]byte{5 + 6*4, 2, 1, 3 + 6, 'x', 2, 5, 3 + 6, 'y'})
	f.Fuzz(func(t *testing.T, b []byte) {
		reply, _ := value(b, 0)
		v, err := scripts.DecodeVote(reply)
		if err == nil && (v.Kind == scripts.Failed || v.Kind > scripts.Refused || v.Bar < 0) {
			t.Fatalf("%v is taken for %+v", reply, v)
		}
		if h, err := scripts.DecodeHolding(reply); err == nil && h.Bar < 0 {
			t.Fatalf("%v is taken for %+v", reply, h)
		}
		if a, err := scripts.DecodeAdmission(reply); err == nil && (a.Result < scripts.AdmitDone || a.Result > scripts.AdmitTooEarly) {
			t.Fatalf("%v is taken for %+v", reply, a)
		}
		_, _ = scripts.DecodeReleased(reply)
	})
}

// A marker is what String writes, and nothing else.
func FuzzMarker(f *testing.F) {
	for _, seed := range []string{
		"", "v1 id=a/b guard=30000 epoch=0 state=admitted", "v1 id=a/b home=10.0.0.1:6379 guard=1 epoch=-2 state=pending:7", "v1 id= guard=0 epoch=0 state=admitted",
		"v1 id=a/b guard=01 epoch=0 state=admitted", "v1 id=a/b guard=9223372036854775807 epoch=0 state=pending:0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := scripts.ParseMarker(text)
		if err == nil && (m.String() != text || m.Guard < 0 || m.Pending < 0) {
			t.Fatalf("%q is taken for %+v", text, m)
		}
	})
}

// Whatever names and prefixes are taken, their keys are theirs alone, and tell the name.
func FuzzNames(f *testing.F) {
	f.Add("redlock", "orders:42", "orders:4")
	f.Add("p", "a}:lock", "a")
	f.Add("p:", "{", "}:bar")
	f.Add("", "", "")
	f.Add("x{y", "a", "b")
	f.Fuzz(func(t *testing.T, prefix, one, other string) {
		if scripts.CheckPrefix(prefix) != nil || scripts.CheckName(one) != nil || scripts.CheckName(other) != nil {
			return
		}
		p := scripts.Prefix(prefix)
		keys := map[string]string{p.Marker(): "the marker"}
		for _, name := range []string{one, other} {
			for kind, key := range map[string]string{"lock": p.Lock(name), "bar": p.Bar(name), "free": p.Channel(name)} {
				if owner, taken := keys[key]; taken && owner != name+"\x00"+kind {
					t.Fatalf("%q is the %s of %q, and %q", key, kind, name, owner)
				}
				keys[key] = name + "\x00" + kind
				if back, ok := strings.CutPrefix(key, prefix+":{"); !ok || strings.TrimSuffix(back, "}:"+kind) != name {
					t.Fatalf("%q does not tell the name %q", key, name)
				}
			}
		}
	})
}

// A notice is what the release script writes, and nothing else: what is read says all that there was.
func FuzzNotice(f *testing.F) {
	const marker = "v1 id=a/b guard=30000 epoch=0 state=admitted"
	for _, seed := range []string{
		"", "R", "G", "F22:>0000000000000077:me:9redlock:{n}:lock", "R22:>0000000000000077:me:9" + "41:redlock:{n}:lock",
		"R22:>0000000000000077:me:9" + strings.Repeat("9", 30) + ":redlock:{n}:lock", "R22:>0000000000000077:me:9redlock:{n}:lock",
		"G22:>0000000000000077:me:9" + "4:me:1" + "41:" + "44:" + marker + "redlock:{n}:lock",
		"G22:>0000000000000077:me:9" + "4:me:1" + "041:" + "44:" + marker + "redlock:{n}:lock",
		"G22:>0000000000000077:me:9" + "04:me:1" + "41:" + "44:" + marker + "redlock:{n}:lock",
		"G22:>0000000000000077:me:9" + "4:me:1" + "41:" + "-1:" + marker + "redlock:{n}:lock",
		"G22:>0000000000000077:me:9" + "4:>e:1" + "9007199254740992:" + "44:" + marker + "redlock:{n}:lock",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const p = scripts.Prefix("redlock")
		n, ok := p.ParseNotice(text)
		if !ok {
			if n != (scripts.Notice{}) {
				t.Fatalf("%q is refused, and taken for %+v", text, n)
			}
			return
		}
		if !scripts.IsReservation(n.Waiter) || n.Name == "" || !strings.HasSuffix(n.Waiter, fmt.Sprint(n.Number)) {
			t.Fatalf("%q is taken for %+v", text, n)
		}
		again := fmt.Sprintf("%c%d:%s", n.Kind, len(n.Waiter), n.Waiter)
		switch n.Kind {
		case scripts.Reserved:
			if n.Ballot == math.MaxInt64 {
				return // more than any number that we count with
			}
			again += fmt.Sprintf("%d:", n.Ballot)
		case scripts.Given:
			again += fmt.Sprintf("%d:%s%d:%d:%s", len(n.Hold), n.Hold, n.Ballot, len(n.Marker), n.Marker)
		case scripts.Free:
		}
		if again += p.Lock(n.Name); again != text {
			t.Fatalf("%q is taken for %+v", text, n)
		}
	})
}
