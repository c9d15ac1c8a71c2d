package scripts

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Marker is the one value by which a master is admitted to vote: who it is, the guard time and the epoch of its
// fleet, and since when it may vote. It is written as
//
//	v1 id=<run_id>/<master_replid> guard=<ms> epoch=<n> state=admitted
//	v1 id=<run_id>/<master_replid> guard=<ms> epoch=<n> state=pending:<us>
//
// where the number behind pending is the time on the master's own clock at which its quarantine is over.
type Marker struct {
	Identity string
	Guard    time.Duration
	Epoch    int64
	// Pending is when the quarantine is over, in microseconds of the master's clock; 0 where it is admitted.
	Pending int64
}

// Admitted reports whether the marker lets its master vote.
func (m Marker) Admitted() bool { return m.Pending == 0 }

// String returns m as it stands on a master.
func (m Marker) String() string {
	state := "admitted"
	if m.Pending != 0 {
		state = "pending:" + strconv.FormatInt(m.Pending, 10)
	}
	return fmt.Sprintf("v1 id=%s guard=%d epoch=%d state=%s", m.Identity, Millis(m.Guard), m.Epoch, state)
}

// ParseMarker reads a marker. Only what String writes is a marker.
func ParseMarker(s string) (Marker, error) {
	bad := func() (Marker, error) { return Marker{}, fmt.Errorf("the admission marker %.80q cannot be read", s) }
	parts := strings.Split(s, " ")
	if len(parts) != 5 || parts[0] != "v1" {
		return bad()
	}
	var value [4]string
	for i, key := range []string{"id=", "guard=", "epoch=", "state="} {
		v, ok := strings.CutPrefix(parts[i+1], key)
		if !ok {
			return bad()
		}
		value[i] = v
	}
	guard, err1 := strconv.ParseInt(value[1], 10, 64)
	epoch, err2 := strconv.ParseInt(value[2], 10, 64)
	m := Marker{Identity: value[0], Guard: time.Duration(guard) * time.Millisecond, Epoch: epoch}
	var err3 error
	if value[3] != "admitted" {
		at, ok := strings.CutPrefix(value[3], "pending:")
		if !ok {
			return bad()
		}
		if m.Pending, err3 = strconv.ParseInt(at, 10, 64); err3 == nil && m.Pending <= 0 {
			return bad()
		}
	}
	if err1 != nil || err2 != nil || err3 != nil || guard < 0 || guard > int64(24*time.Hour/time.Millisecond)*366 || m.String() != s {
		return bad()
	}
	return m, nil
}
