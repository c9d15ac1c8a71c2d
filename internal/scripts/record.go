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

// recordVersion is the version of the admission records. A client refuses a record of another version with an error
// that names both versions.
const recordVersion = "v4"

// noStamp is written for a Record without a stamp, for example in tests.
const noStamp = "0000000000000000"

// NewStamp returns a stamp that no other record has.
func NewStamp() string { return fmt.Sprintf("%016x", 1+jitter.Int64N(1<<63-1)) }

// StampOf returns the version and the stamp at the beginning of a record, which the scripts of locks compare. Each
// write of a record changes the stamp.
func StampOf(record string) string {
	return record[:min(len(record), len(recordVersion)+1+len(noStamp))]
}

// A Record is the value that admits a master to vote. It is written as
//
//	v4 <stamp> id=<identity> masters=<list> epoch=0 maxttl=30000 quarantine=30000 state=admitted since=<us>
//
// with db= after id= if the client that wrote it knows the number of the database, durable= if the master is durable,
// shard=2/3 before masters= if names are sharded, next= after masters= in a joint configuration, and raised= and final=
// after epoch= if the epoch is above 0. The state is admitted, quarantine or unproven. Durations are in milliseconds,
// points in time in microseconds of the masters' time.
type Record struct {
	Stamp       string // 16 hexadecimal digits, new for each write
	Identity    string // run_id/master_replid2/second_repl_offset of the server that was admitted
	Database    string // the number of the database; "" if it is not known
	DurableName string // the name of a durable master, as [Escape] writes it; "" for any other
	Shard       Shard  // the zero Shard if names are not sharded
	// Masters lists all masters of the configuration: see [List]. In a joint configuration, Next lists the next masters.
	Masters, Next string
	Epoch         int64
	// Raised is when this epoch was written on this master. Final is the largest epoch whose configuration is final. Both
	// are 0 if Epoch is 0.
	Raised, Final int64
	// MaxTTL is the max TTL of the deployment, Quarantine the length of a quarantine.
	MaxTTL, Quarantine time.Duration
	Admitted           bool
	// Unproven reports whether the record does not prove that a master of this layout, the shards, has ever voted. The
	// master then extends no lease under this record, except for clients that have read the record. Unproven is false if
	// Admitted is true.
	Unproven bool
	// Since is when the master was admitted, or when its quarantine began.
	Since int64
}

// A Shard is one of several sets of masters over which names are distributed. Of is the number of sets, and Number the
// number of this one, from 1. In the record of a master that is in none of the sets any more, Number is 0: see
// [Retired].
type Shard struct{ Number, Of int }

// Retired returns the shard in the record of a master that is not used since the names were distributed over of shards;
// of is 0 if they are not distributed. No client has this shard, so the master votes for none.
func Retired(of int) Shard { return Shard{Of: max(of, 1)} }

// Retired reports whether shard is the shard in the record of such a master.
func (shard Shard) Retired() bool { return shard.Number == 0 && shard.Of > 0 }

// String returns shard as it is written in records, such as "2/3".
func (shard Shard) String() string { return fmt.Sprintf("%d/%d", shard.Number, shard.Of) }

func parseShard(text string) (shard Shard) {
	number, of, _ := strings.Cut(text, "/")
	shard.Number, _ = strconv.Atoi(number) // cannot fail: String writes numbers
	shard.Of, _ = strconv.Atoi(of)
	return shard
}

// Escape returns the name of a master as it is written in records.
func Escape(name string) string { return url.PathEscape(name) }

// List returns the names of masters as they are written in records. The result does not depend on the order of names.
func List(names []string) string {
	escaped := make([]string, len(names))
	for i, name := range names {
		escaped[i] = Escape(name)
	}
	slices.Sort(escaped)
	return strings.Join(escaped, ",")
}

// ShowList formats a list made by List for errors.
func ShowList(list string) string {
	names := strings.Split(list, ",")
	for i, name := range names {
		if plain, err := url.PathUnescape(name); err == nil {
			names[i] = plain
		}
	}
	return "[" + strings.Join(names, " ") + "]"
}

// String returns r in the form that masters store.
func (r Record) String() string {
	var text strings.Builder
	optional := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&text, " %s=%s", key, value)
		}
	}
	fmt.Fprintf(&text, "%s %s id=%s", recordVersion, cmp.Or(r.Stamp, noStamp), r.Identity)
	optional("db", r.Database)
	optional("durable", r.DurableName)
	if r.Shard != (Shard{}) {
		optional("shard", r.Shard.String())
	}
	optional("masters", r.Masters)
	optional("next", r.Next)
	fmt.Fprintf(&text, " epoch=%d", r.Epoch)
	if r.Epoch != 0 {
		fmt.Fprintf(&text, " raised=%d final=%d", r.Raised, r.Final)
	}
	state := "quarantine"
	switch {
	case r.Admitted:
		state = "admitted"
	case r.Unproven:
		state = "unproven"
	}
	fmt.Fprintf(&text, " maxttl=%d quarantine=%d state=%s since=%d",
		Millis(r.MaxTTL), Millis(r.Quarantine), state, r.Since)
	return text.String()
}

// maxMillis is the longest duration in a record: a year.
const maxMillis = int64(366 * 24 * time.Hour / time.Millisecond)

// ParseRecord parses a record. It accepts only the output of String.
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
		n, _ := strconv.ParseInt(values[key], 10, 64) // cannot fail: String writes numbers
		return max(n, 0)
	}
	maxTTL, quarantine := number("maxttl"), number("quarantine")
	r := Record{
		Stamp: stamp, Identity: values["id"], Database: values["db"], DurableName: values["durable"],
		Shard:   parseShard(values["shard"]),
		Masters: values["masters"], Next: values["next"],
		Epoch: number("epoch"), Raised: number("raised"), Final: number("final"),
		MaxTTL: time.Duration(maxTTL) * time.Millisecond, Quarantine: time.Duration(quarantine) * time.Millisecond,
		Admitted: values["state"] == "admitted", Unproven: values["state"] == "unproven", Since: number("since"),
	}
	// If String gives another text, it did not write this one: a part is missing, duplicated or in another place.
	if maxTTL > maxMillis || quarantine > maxMillis || r.String() != text {
		return Record{}, fmt.Errorf("the admission record %.200q cannot be read", text)
	}
	return r, nil
}
