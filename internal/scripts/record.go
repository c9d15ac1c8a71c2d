package scripts

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// recordVersion is that of the admission records. A program of another version is refused by name.
const recordVersion = "v2"

// A Record is the one value by which a master is admitted to vote. It is written as
//
//	v2 id=<identity> n=5 epoch=0 longest=30000 quarantine=30000 state=admitted since=<us>
//
// with home= behind id= where the master is a durable one, group=2/3 before n= where the names are spread over groups,
// next= behind n= in a joint configuration, raised= and alone= behind epoch= where the epoch is above 0. Times are in
// milliseconds, moments in microseconds of the masters' time.
type Record struct {
	Identity string // run_id/master_replid2/second_repl_offset of the server that the record is about
	Home     string // the address of a durable master, as [Home] writes it; "" for any other
	Group    Group  // the zero Group where the names are not spread
	N, Next  int    // the number of masters of the set, and of the next one in a joint configuration, else 0
	Epoch    int64
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

// Home writes an address as a record can have it.
func Home(addr string) string { return url.PathEscape(addr) }

// String returns r as it stands on a master.
func (r Record) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s id=%s", recordVersion, r.Identity)
	if r.Home != "" {
		fmt.Fprintf(&b, " home=%s", r.Home)
	}
	if r.Group != (Group{}) {
		fmt.Fprintf(&b, " group=%v", r.Group)
	}
	fmt.Fprintf(&b, " n=%d", r.N)
	if r.Next != 0 {
		fmt.Fprintf(&b, " next=%d", r.Next)
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
		return Record{}, fmt.Errorf("the admission record %.80q has version %.10q; this program knows version %s",
			text, version, recordVersion)
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
		Identity: values["id"], Home: values["home"], Group: parseGroup(values["group"]),
		N: int(number("n")), Next: int(number("next")),
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
