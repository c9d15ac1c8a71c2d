package scripts

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Marker is the one value by which a master is admitted to vote: who it is, the guard time and the epoch of its
// fleet, and since when it may vote. It is written as
//
//	v1 id=<run_id>/<master_replid> guard=<ms> epoch=<n> state=admitted
//	v1 id=<run_id>/<master_replid> guard=<ms> epoch=<n> state=pending:<us>
//	v1 id=<run_id>/<master_replid> guard=<ms> epoch=<n> since=<us> alone=<n> state=admitted
//
// where the number behind pending is the time on the master's own clock at which its quarantine is over, and that behind
// since the time at which this epoch was written here; that and alone are there where the epoch is above 0. Behind id= there
// is home=<address> where the operator has named the master as one that remembers every write: by that a restart with its
// own memory is told from one with the memory of another master, which has come by replication.
type Marker struct {
	Identity string
	// Home is where the master was reached by the one who wrote the marker, as [Home] writes it; "" where it is not named
	// as one that remembers every write.
	Home  string
	Guard time.Duration
	Epoch int64
	// Since is when Epoch was written here, in microseconds of the master's clock; Alone the largest epoch whose set of
	// masters may act alone. Both are 0 where Epoch is.
	Since, Alone int64
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
	home, change := "", ""
	if m.Home != "" {
		home = " home=" + m.Home
	}
	if m.Epoch != 0 {
		change = fmt.Sprintf(" since=%d alone=%d", m.Since, m.Alone)
	}
	return fmt.Sprintf("v1 id=%s%s guard=%d epoch=%d%s state=%s", m.Identity, home, Millis(m.Guard), m.Epoch, change, state)
}

// Home writes an address as a marker can have it.
func Home(addr string) string { return url.PathEscape(addr) }

// ParseMarker reads a marker. Only what String writes is a marker.
func ParseMarker(s string) (Marker, error) {
	bad := func() (Marker, error) { return Marker{}, fmt.Errorf("the admission marker %.80q cannot be read", s) }
	parts := strings.Split(s, " ")
	home, change := "", [2]int64{}
	if len(parts) > 2 && strings.HasPrefix(parts[2], "home=") {
		home = parts[2][len("home="):]
		parts = slices.Delete(parts, 2, 3)
	}
	if len(parts) == 7 {
		for i, key := range []string{"since=", "alone="} {
			v, ok := strings.CutPrefix(parts[4+i], key)
			n, err := strconv.ParseInt(v, 10, 64)
			if change[i] = n; !ok || err != nil || n < 0 {
				return bad()
			}
		}
		parts = slices.Delete(parts, 4, 6)
	}
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
	m := Marker{Identity: value[0], Home: home, Guard: time.Duration(guard) * time.Millisecond, Epoch: epoch, Since: change[0], Alone: change[1]}
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
	if err1 != nil || err2 != nil || err3 != nil || guard < 0 || epoch < 0 || guard > int64(24*time.Hour/time.Millisecond)*366 || m.String() != s {
		return bad()
	}
	return m, nil
}
