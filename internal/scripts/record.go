package scripts

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
)

// recordVersion is the version of the admission records. A client of another version is refused by name.
const recordVersion = "v3"

// noStamp is the stamp of a Record without one, as tests write them.
const noStamp = "0000000000000000"

// NewStamp returns a stamp that no other record has.
func NewStamp() string { return fmt.Sprintf("%016x", 1+jitter.Int64N(1<<63-1)) }

// StampOf returns the beginning of a record, its version and stamp, which is what the scripts of locks compare. Each
// write of a record gives it another stamp.
func StampOf(record string) string {
	return record[:min(len(record), len(recordVersion)+1+len(noStamp))]
}

// A Record is the one value by which a master is admitted to vote. It is written as
//
//	v3 <stamp> id=<identity> masters=<list> epoch=0 longest=30000 quarantine=30000 state=admitted since=<us>
//
// with home= after id= if the master is a durable one, group=2/3 before masters= if the names are spread over groups,
// next= after masters= in a joint configuration, raised= and alone= after epoch= if the epoch is above 0. Times are in
// milliseconds, moments in microseconds of the masters' time.
type Record struct {
	Stamp    string // 16 hexadecimal digits, other ones for each write
	Identity string // run_id/master_replid2/second_repl_offset of the server that the record is about
	Home     string // the name of a durable master, as [Escape] writes it; "" for any other
	Group    Group  // the zero Group if the names are not spread
	// Masters names all masters of the configuration, and Next those of the next one in a joint configuration: see [List].
	Masters, Next string
	Epoch         int64
	// Raised is when this epoch was written here; Alone the largest epoch whose set may act alone. Both are 0 where the
	// epoch is.
	Raised, Alone int64
	// Longest is the longest TTL that is allowed, Quarantine how long a quarantine must last.
	Longest, Quarantine time.Duration
	Admitted            bool
	// Since is when the master was admitted, or when its quarantine began.
	Since int64
}

// A Group is one of several groups of masters among which names are spread: Number of Of, from 1.
type Group struct{ Number, Of int }

// String is "2/3", as it stands in a record.
func (g Group) String() string { return fmt.Sprintf("%d/%d", g.Number, g.Of) }

func parseGroup(text string) (g Group) {
	number, of, _ := strings.Cut(text, "/")
	g.Number, _ = strconv.Atoi(number) // String writes nothing that is no number
	g.Of, _ = strconv.Atoi(of)
	return g
}

// Escape writes the name of a master as a record can have it.
func Escape(name string) string { return url.PathEscape(name) }

// List writes the names of masters as a record can have them, in an order that does not depend on theirs.
func List(names []string) string {
	escaped := make([]string, len(names))
	for i, name := range names {
		escaped[i] = Escape(name)
	}
	slices.Sort(escaped)
	return strings.Join(escaped, ",")
}

// ShowList returns a list of masters as errors show it.
func ShowList(list string) string {
	names := strings.Split(list, ",")
	for i, name := range names {
		if plain, err := url.PathUnescape(name); err == nil {
			names[i] = plain
		}
	}
	return "[" + strings.Join(names, " ") + "]"
}

// String returns r as it stands on a master.
func (r Record) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s id=%s", recordVersion, cmp.Or(r.Stamp, noStamp), r.Identity)
	if r.Home != "" {
		fmt.Fprintf(&b, " home=%s", r.Home)
	}
	if r.Group != (Group{}) {
		fmt.Fprintf(&b, " group=%v", r.Group)
	}
	if r.Masters != "" {
		fmt.Fprintf(&b, " masters=%s", r.Masters)
	}
	if r.Next != "" {
		fmt.Fprintf(&b, " next=%s", r.Next)
	}
	fmt.Fprintf(&b, " epoch=%d", r.Epoch)
	if r.Epoch != 0 {
		fmt.Fprintf(&b, " raised=%d alone=%d", r.Raised, r.Alone)
	}
	state := "quarantine"
	if r.Admitted {
		state = "admitted"
	}
	fmt.Fprintf(&b, " longest=%d quarantine=%d state=%s since=%d",
		Millis(r.Longest), Millis(r.Quarantine), state, r.Since)
	return b.String()
}

// maxMillis is the longest time that a record may have: a year.
const maxMillis = int64(366 * 24 * time.Hour / time.Millisecond)

// ParseRecord reads a record. Only what String writes is one.
func ParseRecord(text string) (Record, error) {
	version, rest, _ := strings.Cut(text, " ")
	if version != recordVersion {
		return Record{}, fmt.Errorf("the admission record %.80q has version %.10q; this client knows version %s",
			text, version, recordVersion)
	}
	stamp, rest, _ := strings.Cut(rest, " ")
	if len(stamp) != len(noStamp) || strings.Trim(stamp, "0123456789abcdef") != "" {
		return Record{}, fmt.Errorf("the admission record %.200q cannot be read", text)
	}
	if stamp == noStamp {
		stamp = ""
	}
	values := map[string]string{}
	for part := range strings.SplitSeq(rest, " ") {
		key, value, _ := strings.Cut(part, "=")
		values[key] = value
	}
	number := func(key string) int64 {
		n, _ := strconv.ParseInt(values[key], 10, 64) // String writes nothing that is no number
		return max(n, 0)
	}
	longest, quarantine := number("longest"), number("quarantine")
	r := Record{
		Stamp: stamp, Identity: values["id"], Home: values["home"], Group: parseGroup(values["group"]),
		Masters: values["masters"], Next: values["next"],
		Epoch: number("epoch"), Raised: number("raised"), Alone: number("alone"),
		Longest: time.Duration(longest) * time.Millisecond, Quarantine: time.Duration(quarantine) * time.Millisecond,
		Admitted: values["state"] == "admitted", Since: number("since"),
	}
	// What is written differently by String was not written by it: a part that is missing, double or in another place.
	if longest > maxMillis || quarantine > maxMillis || r.String() != text {
		return Record{}, fmt.Errorf("the admission record %.200q cannot be read", text)
	}
	return r, nil
}
