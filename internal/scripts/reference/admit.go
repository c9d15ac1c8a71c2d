package reference

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A record maps the keys of an admission record to their values. If a key occurs twice, the last value is used.
type record map[string]string

var (
	wordOfRecord = regexp.MustCompile(` ([a-z]+)=([^ \t\n\v\f\r]+)`)
	hexBegin     = regexp.MustCompile(`^[0-9A-Fa-f]+`)
)

func readRecord(text string) record {
	r := record{}
	if strings.HasPrefix(text, "v4 ") {
		for _, found := range wordOfRecord.FindAllStringSubmatch(text, -1) {
			r[found[1]] = found[2]
		}
	}
	return r
}

func (r record) number(key string) float64 {
	n, err := strconv.ParseFloat(r[key], 64)
	if err != nil {
		return 0
	}
	return n
}

// order is the order of the words in a record.
var order = []string{
	"id", "db", "durable", "shard", "masters", "next", "epoch", "raised", "final", "maxttl", "quarantine", "state",
	"since",
}

func (r record) text(stamp string) string {
	text := stamp
	for _, key := range order {
		if r[key] != "" {
			text += " " + key + "=" + r[key]
		}
	}
	return text
}

func plain(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }

func (c *call) admit() any {
	step, median, there := scripts.AdmitStep(c.arg(1)), 0.0, c.get(c.key(1), "")
	now, identity := float64(c.now), c.env.Identity()
	answer := func(r scripts.AdmitResult) any {
		return []any{int64(r), there, c.now, identity, c.state.TTL(c.now, c.key(1))}
	}
	if step == scripts.AdmitRead {
		return answer(scripts.AdmitDone)
	}
	if identity != c.arg(2) {
		return answer(scripts.AdmitOtherIdentity)
	}
	if there != c.arg(3) {
		return answer(scripts.AdmitOtherRecord)
	}
	median = c.number(4)
	if (starts(step) || step == scripts.AdmitEnd) && math.Abs(now-median) > c.number(5) {
		return answer(scripts.AdmitClockDiffers)
	}
	old, wanted := readRecord(there), readRecord(c.arg(6))
	quarantine := max(old.number("quarantine"), wanted.number("quarantine"))
	same := old["masters"] == wanted["masters"] && old["next"] == wanted["next"] || old["epoch"] != wanted["epoch"]
	sameShard := old["shard"] == wanted["shard"] || old["masters"] == ""
	//mutant:master-list 2= false
	if step != scripts.AdmitReplace && (!same || !sameShard) {
		return answer(scripts.AdmitOtherMasters)
	}
	if sameShard && wanted.number("epoch") < old.number("epoch") {
		return answer(scripts.AdmitTooEarly)
	}
	longest := longestTTL(step, old, wanted) // step changes old
	next := c.step(step, old, wanted, median, quarantine)
	if next == nil {
		return answer(scripts.AdmitTooEarly)
	}
	next["id"], next["maxttl"], next["quarantine"] = identity, plain(longest), plain(quarantine)
	there = next.text(scripts.StampOf(c.arg(6)))
	c.state.Set(c.now, c.key(1), there, 0)
	return answer(scripts.AdmitDone)
}

// longestTTL returns the max TTL that a step writes. Only AdmitMaxTTL raises the max TTL of a master that votes.
func longestTTL(step scripts.AdmitStep, old, wanted record) float64 {
	switch {
	case starts(step), step == scripts.AdmitEnd, step == scripts.AdmitNow && old["state"] != "admitted":
		return wanted.number("maxttl")
	case step == scripts.AdmitMaxTTL:
		return max(old.number("maxttl"), wanted.number("maxttl"))
	}
	return old.number("maxttl")
}

func starts(step scripts.AdmitStep) bool {
	return step == scripts.AdmitStart || step == scripts.AdmitReplace
}

// step returns the record that results from one step, or nil if the step cannot be applied to the record old.
func (c *call) step(step scripts.AdmitStep, old, wanted record, median, quarantine float64) record {
	now, next := float64(c.now), old
	//mutant:quarantine-since = plain(now)
	moment := plain(max(now, median))
	replid, offset := c.env.secondary()
	freed := step == scripts.AdmitRewrite && strings.Trim(replid, "0") == "" && offset == "-1"
	own := old["id"] == c.env.Identity() || freed && hexBegin.FindString(old["id"]) == c.env.RunID
	known := own || old["state"] == "admitted" && old["durable"] != "" && old["durable"] == wanted["durable"]
	switch {
	//mutant:restart-guard 3= true
	case starts(step) || step == scripts.AdmitNow && known:
		next = wanted
		if wanted["epoch"] != "0" {
			next["raised"] = moment
		}
		state := next["state"]
		next["state"], next["since"] = "admitted", moment
		if starts(step) {
			next["state"] = "quarantine"
			if state == "unproven" {
				next["state"] = state
			}
		}
	case !own || step == scripts.AdmitNow || step == scripts.AdmitEpoch && wanted["epoch"] == "0":
		return nil
	case step == scripts.AdmitEnd:
		if old["state"] != "quarantine" && old["state"] != "unproven" || now < old.number("since")+quarantine*1000 {
			return nil
		}
		next["state"], next["since"] = "admitted", moment
	case step == scripts.AdmitEpoch:
		if wanted["epoch"] != old["epoch"] {
			next["raised"] = moment
		}
		for _, key := range []string{"masters", "next", "epoch", "final"} {
			next[key] = wanted[key]
		}
	}
	return next
}
