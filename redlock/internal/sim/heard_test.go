package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// What the simulator takes for the id of a hold, a ballot or a mode is what the library has put there.
func TestTheWordsAreWhereTheLibraryPutsThem(t *testing.T) {
	fleet := scripts.NewFleet(prefix, time.Second, time.Minute, 0)
	hold := scripts.NewHold(prefix.Keys("a"), "the hold", "the previous one")
	words := func(c *scripts.Call) (list []string) {
		var all []string
		for _, a := range c.Args {
			all = append(all, fmt.Sprint(a))
		}
		return all[2+number(all[1]):]
	}
	acquire := words(fleet.AcquireCall(hold, scripts.ModeHeal, time.Second, 4711, 4712, 1))
	if acquire[wordID] != "the hold" || blockOf(acquire) != (block{4711, 4712}) || modeOf(acquire) != scripts.ModeHeal {
		t.Errorf("acquire: %q", acquire)
	}
	plain := words(fleet.AcquireCall(scripts.NewHold(prefix.Keys("a"), "the hold", ""), scripts.ModeAcquire, time.Second, 4711, 4711, 1))
	if plain[wordID] != "the hold" || blockOf(plain) != (block{4711, 4711}) || modeOf(plain) != scripts.ModeAcquire {
		t.Errorf("acquire: %q", plain)
	}
	usual := words(scripts.NewFleet(prefix, scripts.UsualWindow, scripts.UsualBarTTL, 0).AcquireCall(scripts.NewHold(prefix.Keys("a"), "the hold", ""), scripts.ModeAcquire, time.Second, 4711, 4711, 1))
	if usual[wordID] != "the hold" || blockOf(usual) != (block{4711, 4711}) || modeOf(usual) != scripts.ModeAcquire {
		t.Errorf("acquire: %q", usual)
	}
	ticket := scripts.NewTicket("L", 1, 1, 0)
	queue := words(fleet.QueueCall(hold, ticket, true, time.Second, time.Second, 4711, 4712))
	if queue[wordID] != "the hold" || blockOf(queue) != (block{4711, 4712}) || modeOf(queue) != scripts.ModeAcquire {
		t.Errorf("queue: %q", queue)
	}
	if leave := words(fleet.LeaveCall(prefix.Keys("a"), ticket.String())); !slices.Equal(endsOf(leave), []string{ticket.String()}) {
		t.Errorf("leave: %q", leave)
	}
	if extend := words(fleet.ExtendCall(hold, time.Second, 1)); extend[wordID] != "the hold" {
		t.Errorf("extend: %q", extend)
	}
	release := words(fleet.ReleaseCall(hold, 4713, true, scripts.Reserve))
	if release[wordEndBallot] != "4713" || !slices.Equal(endsOf(release), []string{"the hold", "the previous one"}) {
		t.Errorf("release: %q", release)
	}
	usualRelease := words(scripts.NewFleet(prefix, scripts.UsualWindow, scripts.UsualBarTTL, 0).ReleaseCall(scripts.NewHold(prefix.Keys("a"), "the hold", ""), 4713, false, scripts.Advance))
	if usualRelease[wordEndBallot] != "4713" || !slices.Equal(endsOf(usualRelease), []string{"the hold"}) {
		t.Errorf("release: %q", usualRelease)
	}
	if advance := words(fleet.AdvanceCall(prefix.Keys("a"))); len(endsOf(advance)) != 0 {
		t.Errorf("advance: %q", advance)
	}
	if debt := words(fleet.DebtCall(prefix.Keys("a"), []string{"x", "y"}, 1)); !slices.Equal(endsOf(debt), []string{"x", "y"}) {
		t.Errorf("debt: %q", debt)
	}
	if admit := words(fleet.AdmitCall(scripts.AdmitRequest{Step: scripts.AdmitStart})); admit[wordStep] != "start" {
		t.Errorf("admit: %q", admit)
	}
}
