package main

import (
	"time"

	"github.com/redlock-go/redlock/internal/diagnose"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// The output of --json. Durations are in milliseconds.
type (
	jsonStatus struct {
		CanLock bool         `json:"can_lock"`
		Spare   int          `json:"spare"` // number of masters that may still fail; 0 if can_lock is false
		Quorums []jsonQuorum `json:"quorums"`
		Masters []jsonMaster `json:"masters"`
	}
	jsonQuorum struct {
		Shard  int    `json:"shard,omitempty"`
		Set    string `json:"set,omitempty"` // "old" or "next" during a change
		Able   int    `json:"able"`          // number of masters that can grant a lock
		Needed int    `json:"needed"`
		N      int    `json:"n"`
	}
	jsonMaster struct {
		Addr   string `json:"addr"`
		Shard  int    `json:"shard,omitempty"`
		State  string `json:"state"`
		Left   int64  `json:"left_ms,omitempty"`
		MaxTTL int64  `json:"max_ttl_ms,omitempty"`
		Epoch  int64  `json:"epoch,omitempty"`
		List   string `json:"list,omitempty"` // hash of the configuration in the admission record
		Error  string `json:"error,omitempty"`
	}
	jsonCheck struct {
		CanLock  bool          `json:"can_lock"`
		Spare    int           `json:"spare"`
		Quorums  []jsonQuorum  `json:"quorums"`
		Findings []jsonFinding `json:"findings"`
		Status   int           `json:"status"`
	}
	jsonFinding struct {
		Master   string `json:"master"`
		Severity string `json:"severity"`
		About    string `json:"about"`
		NoVote   bool   `json:"no_vote"` // whether the master can grant no lock because of this
		What     string `json:"what"`
		Risk     string `json:"risk"`
		Fix      string `json:"fix"`
	}
	jsonChange struct {
		Epoch    int64        `json:"epoch"`
		List     string       `json:"list"` // hash of the configuration in the file
		Raised   int          `json:"raised"`
		Open     int          `json:"open"`
		Complete bool         `json:"complete"`
		Left     int64        `json:"left_ms,omitempty"`
		Next     string       `json:"next,omitempty"`
		Late     []string     `json:"late,omitempty"` // clients that do not use the file
		Lost     []string     `json:"lost,omitempty"` // what to do if a majority of the masters is lost for good
		Masters  []jsonMaster `json:"masters"`
	}
	jsonAborted struct {
		Epoch int64  `json:"epoch"`
		Next  string `json:"next"`
	}
)

func jsonMasters(list []redlockinfo.Master) []jsonMaster {
	out := make([]jsonMaster, 0, len(list))
	for _, m := range list {
		out = append(out, jsonMaster{
			m.Addr, m.Shard, string(m.State), millis(m.Left), millis(m.MaxTTL), m.Epoch, m.List, diagnose.Why(&m),
		})
	}
	return out
}

func newJSONStatus(v redlockinfo.Verdict) jsonStatus {
	return jsonStatus{v.CanLock, v.Spare, jsonQuorums(v), jsonMasters(v.Masters)}
}

func jsonQuorums(v redlockinfo.Verdict) []jsonQuorum {
	out := make([]jsonQuorum, 0, len(v.Quorums))
	for _, q := range v.Quorums {
		out = append(out, jsonQuorum{q.Shard, q.Set, q.Able, q.Needed, q.N})
	}
	return out
}

func jsonFindings(v redlockinfo.Verdict, status int) jsonCheck {
	out := jsonCheck{v.CanLock, v.Spare, jsonQuorums(v), make([]jsonFinding, 0, len(v.Findings)), status}
	for _, f := range v.Findings {
		out.Findings = append(out.Findings, jsonFinding{
			f.Master, f.Severity.String(), f.About, f.NoVote, f.What, f.Risk, f.Fix,
		})
	}
	return out
}

func millis(d time.Duration) int64 { return max(0, d).Milliseconds() }
