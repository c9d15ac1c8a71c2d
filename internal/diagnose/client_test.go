package diagnose

import (
	"cmp"
	"errors"
	"fmt"
	"testing"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A master without a vote has a finding even if the examination found nothing, and a finding never takes away a vote.
// During a change the finding names the set that has no quorum.
func TestVerdictFollowsTheVotes(t *testing.T) {
	refuses := redlockinfo.Finding{Master: "m2", Severity: failure, About: "scripts", What: "it refused acquire"}
	lost := redlockinfo.Finding{Master: "m1", Severity: failure, About: "rights", NoVote: true, Risk: sayNoVote}
	for _, c := range []struct {
		name   string
		rule   quorum.Rule
		able   quorum.Set
		report []redlockinfo.Finding
		says   string            // the verdict, and each finding
		state  redlockinfo.State // of the masters that are not able; "" for down
	}{
		{"all vote", quorum.Rule{Old: 0b111}, 0b111, nil, "yes, and one more master may fail", ""},
		{"one is down", quorum.Rule{Old: 0b111}, 0b011, nil, "yes, but no more masters may fail" +
			"; deployment warning quorum: 2 of 3 masters vote, 2 are needed; m2 failure connection: no answer (no vote)", ""},
		{"a failure that explains the state", quorum.Rule{Old: 0b111}, 0b011, []redlockinfo.Finding{refuses},
			"yes, but no more masters may fail; deployment warning quorum: 2 of 3 masters vote, 2 are needed" +
				"; m2 failure scripts: it refused acquire (no vote)", redlockinfo.StateFailing},
		{"a finding against a vote", quorum.Rule{Old: 0b111}, 0b111, []redlockinfo.Finding{lost},
			"yes, and one more master may fail; m1 warning rights: ", ""},
		{"the old masters", quorum.Rule{Old: 0b00111, Next: 0b11100}, 0b11100, nil, "no" +
			"; deployment failure quorum: 1 of 3 old masters vote, 2 are needed" +
			"; m0 failure connection: no answer (no vote); m1 failure connection: no answer (no vote)", ""},
		{"the next masters", quorum.Rule{Old: 0b00111, Next: 0b11100}, 0b01111, nil, "yes, but no more masters may fail" +
			"; deployment warning quorum: 2 of 3 next masters vote, 2 are needed" +
			"; m4 failure connection: no answer (no vote)", ""},
	} {
		view := &admission.View{Config: &quorum.Config{Rule: c.rule}}
		client := &Client{Name: "deployment", View: view, Able: c.able}
		for i := range c.rule.All().All() {
			m := redlockinfo.Master{Addr: fmt.Sprint("m", i), State: "voting"}
			state := admission.State{Phase: admission.Voting}
			if !c.able.Has(i) {
				m.State, m.Err, state.Phase = cmp.Or(c.state, redlockinfo.StateDown), errors.New("no answer"), admission.Down
			}
			view.Config.Order = append(view.Config.Order, i)
			view.Masters, client.Masters = append(view.Masters, state), append(client.Masters, m)
		}
		v := client.Judge(c.report)
		says := v.String()
		for _, f := range v.Findings {
			says += fmt.Sprintf("; %s %v %s: %s", f.Master, f.Severity, f.About, f.What)
			if f.NoVote {
				says += " (no vote)"
			}
		}
		if says != c.says {
			t.Errorf("%s: the verdict is\n%s\nwant\n%s", c.name, says, c.says)
		}
	}
}
