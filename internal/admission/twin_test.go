package admission

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

func randomFact(r *rand.Rand) Fact {
	identities := []string{"a" + zeros, "a" + taken, "b" + zeros, "b" + taken}
	f := Fact{Known: r.IntN(8) > 0, Began: r.Uint64N(3)}
	f.Own = epoch + r.Int64N(80e6) - 40e6
	f.Off = time.Duration(r.IntN(20)) * time.Second
	if r.IntN(4) == 0 {
		f.DurableName = []string{"h:1", "h:2"}[r.IntN(2)]
	}
	if r.IntN(10) > 0 {
		var rec scripts.Record
		rec.Identity, rec.Masters, rec.Admitted = identities[r.IntN(4)], list(3+r.IntN(20)/19*2), r.IntN(3) > 0
		rec.MaxTTL = time.Duration(1+r.IntN(90)) * time.Second
		rec.Quarantine = rec.MaxTTL + time.Duration(r.IntN(2)*r.IntN(60))*time.Second
		rec.Epoch, rec.Since = r.Int64N(20)/19, epoch-r.Int64N(200e6)
		if rec.Epoch > 0 {
			rec.Raised = 1
		}
		if r.IntN(3) == 0 {
			rec.DurableName = "h:1"
		}
		began := f.Began
		f.Learn(rec.String(), r.Uint64N(4), 9)
		f.Began = began
	}
	if f.Known && r.IntN(5) > 0 {
		f.Up, f.Identity, f.Read = true, identities[r.IntN(4)], r.IntN(8) > 0
	} else {
		f.Read, f.Lost = false, time.Duration(r.IntN(120))*time.Second
	}
	return f
}

// twin is a second implementation of Judge for one of three masters at epoch 0. The test compares the two.
func twin(f *Deployment, i int) (Phase, scripts.AdmitStep) {
	me := f.Facts[i]
	needed, clocks, unknown, other := max(f.MaxTTL, 30*time.Second), 0, false, false
	for _, x := range f.Facts {
		if x.Text != "" {
			needed = max(needed, x.Record.MaxTTL, x.Record.Quarantine)
		}
	}
	fresh, admitted, waits := 0, 0, false
	some, like := false, map[time.Duration]int{} // some: a voting master was read; like: records by max TTL
	agrees := func(x Fact) bool { return x.Text != "" && x.Record.Epoch == 0 && x.Record.Masters == list(3) }
	for j, x := range f.Facts {
		other = other || x.Read && x.Text != "" && !agrees(x)
		switch {
		case agrees(x) && x.Read && (j == i || x.Asked > me.Began):
			fresh++
			like[x.Record.MaxTTL]++
			freed := x.Up && x.Identity[1:] == zeros && x.Record.Identity[:1] == x.Identity[:1]
			some = some || x.Up && x.Record.Admitted && (freed || x.Record.Identity == x.Identity)
		case !x.Known || x.Lost < needed && (x.Up && x.Off.Abs() <= 15*time.Second || !x.Up && x.Asked > 0):
			waits = true // matters only if none has been admitted
		}
		if agrees(x) && x.Record.Admitted {
			admitted++
		}
		if f.Clocks.Known.Has(j) {
			clocks++
		}
		unknown = unknown || !x.Known || x.Up && !x.Read
	}
	rec := me.Record
	sameProcess := me.Text != "" && me.Up && rec.Identity[:1] == me.Identity[:1]
	sameServer := sameProcess && (rec.Identity == me.Identity || me.Identity[1:] == zeros)
	startable := clocks >= 2 && me.Off.Abs() <= 15*time.Second
	unheard := false
	for _, x := range f.Facts {
		unheard = unheard || !x.Known
	}
	over := rec.Since + rec.Quarantine.Microseconds()
	switch {
	case !me.Up && me.Known:
		return Down, ""
	case !me.Up:
		return Connecting, ""
	case !me.Read:
		return Connecting, scripts.AdmitRead
	case me.Text != "" && !agrees(me):
		return Blocked, ""
	case sameServer && rec.Admitted && rec.Identity != me.Identity:
		return Voting, scripts.AdmitRewrite
	case sameServer && rec.Admitted:
		if me.DurableName != "" && rec.DurableName == "" {
			return Voting, scripts.AdmitNow
		}
		return Voting, ""
	case !sameServer && me.DurableName != "" && me.DurableName == rec.DurableName && rec.Admitted && !sameProcess && me.Identity[1:] == zeros:
		return Connecting, scripts.AdmitNow
	case !sameServer && unknown:
		return Connecting, ""
	case other && admitted < 2:
		return Blocked, ""
	case clocks < 2 && unheard:
		if sameServer {
			return InQuarantine, ""
		}
		return Connecting, ""
	case !startable:
		return Blocked, ""
	case !sameServer:
		return Connecting, scripts.AdmitStart
	case rec.Since > f.Clocks.Latest+15e6:
		return InQuarantine, scripts.AdmitStart
	case rec.Quarantine < needed:
		return InQuarantine, scripts.AdmitSettle
	case over > me.Own || over > f.Clocks.Median || fresh < 2 || admitted < 2 && waits:
		return InQuarantine, ""
	case !some && fresh == 2 && len(like) == 2:
		return Blocked, ""
	}
	return InQuarantine, scripts.AdmitEnd
}

func TestJudgeMatchesTwin(t *testing.T) {
	seen := make(map[scripts.AdmitStep]int)
	for seed := range uint64(80_000) {
		r := rand.New(rand.NewPCG(seed, 3))
		f := &Deployment{
			Config: config(3), MaxTTL: time.Duration(1+r.IntN(90)) * time.Second, Addr: func(int) string { return "x" },
			Facts: []Fact{randomFact(r), randomFact(r), randomFact(r)},
			Clocks: ballot.Reading{
				Median: epoch + r.Int64N(20e6) - 10e6, Latest: epoch + 10e6,
				Known: quorum.Set(r.Uint64()|r.Uint64()) & quorum.First(3),
			},
		}
		for i := range f.Facts {
			st, m := f.Judge(i)
			phase, step := twin(f, i)
			if st.Phase != phase || m.Step != step {
				t.Fatalf("seed %d, master %d: %v, step %q; the twin gives %v, step %q\n%+v",
					seed, i, st.Phase, m.Step, phase, step, f)
			}
			seen[step]++
		}
	}
	for _, step := range []scripts.AdmitStep{"", scripts.AdmitRead, scripts.AdmitStart, scripts.AdmitEnd, scripts.AdmitNow,
		scripts.AdmitSettle, scripts.AdmitRewrite} {
		if seen[step] < 150 {
			t.Errorf("step %q has occurred only %d times, want at least 150", step, seen[step])
		}
	}
}
