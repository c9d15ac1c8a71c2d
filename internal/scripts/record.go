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
// with home= behind id= where the master is a durable one, next= behind n= in a joint configuration, raised= and alone=
// behind epoch= where the epoch is above 0. Times are in milliseconds, moments in microseconds of the masters' time.
type Record struct {
	// Identity is run_id/master_replid2/second_repl_offset of the server that the record is about.
	Identity string
	// Home is the address of a durable master, as [Home] writes it; "" for any other.
	Home string
	// N is the number of masters of the set; Next that of the next one in a joint configuration, else 0.
	N, Next int
	Epoch   int64
	// Raised is when this epoch was written here; Alone the largest epoch whose set may act alone. Both are 0 where the
	// epoch is.
	Raised, Alone int64
	// Longest is the longest TTL that is allowed, Quarantine how long a quarantine must last.
	Longest, Quarantine time.Duration
	Admitted            bool
	// Since is when the master was admitted, or when its quarantine began: then the larger of its own time and the
	// median of the masters' times.
	Since int64
}

// Home writes an address as a record can have it.
func Home(addr string) string { return url.PathEscape(addr) }

// String returns r as it stands on a master.
func (r Record) String() string {
	b := make([]byte, 0, 256)
	put := func(key, value string) { b = append(append(append(append(b, ' '), key...), '='), value...) }
	number := func(key string, n int64) { put(key, strconv.FormatInt(n, 10)) }
	b = append(b, recordVersion...)
	put("id", r.Identity)
	if r.Home != "" {
		put("home", r.Home)
	}
	number("n", int64(r.N))
	if r.Next != 0 {
		number("next", int64(r.Next))
	}
	number("epoch", r.Epoch)
	if r.Epoch != 0 {
		number("raised", r.Raised)
		number("alone", r.Alone)
	}
	number("longest", Millis(r.Longest))
	number("quarantine", Millis(r.Quarantine))
	put("state", map[bool]string{true: "admitted", false: "quarantine"}[r.Admitted])
	number("since", r.Since)
	return string(b)
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
	numbers := map[string]int64{}
	for part := range strings.SplitSeq(rest, " ") {
		key, value, _ := strings.Cut(part, "=")
		values[key] = value
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
			numbers[key] = n
		}
	}
	longest, quarantine := numbers["longest"], numbers["quarantine"]
	r := Record{
		Identity: values["id"], Home: values["home"],
		N: int(min(numbers["n"], MaxBallot)), Next: int(min(numbers["next"], MaxBallot)),
		Epoch: numbers["epoch"], Raised: numbers["raised"], Alone: numbers["alone"],
		Longest:    time.Duration(longest) * time.Millisecond,
		Quarantine: time.Duration(quarantine) * time.Millisecond,
		Admitted:   values["state"] == "admitted", Since: numbers["since"],
	}
	// What is written differently by String was not written by it: a part that is missing, double or in another place.
	if longest > maxMillis || quarantine > maxMillis || r.String() != text {
		return Record{}, fmt.Errorf("the admission record %.200q cannot be read", text)
	}
	return r, nil
}
