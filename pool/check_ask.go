package pool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// ask finds out by commands what INFO does not tell. Messages come last: behind them the connection takes no others.
func (x *patient) ask(l *link) (op string, err error) {
	if x.info.Role == "master" && !x.info.Loading {
		if err := x.tryWrite(l); err != nil {
			return "set", err
		}
	}
	if err := x.askPersistence(l); err != nil {
		return "config get", err
	}
	return "rights", x.tryRights(l)
}

// try runs a command. An error reply is told apart from the end of the connection.
func try(l *link, cmd string, args ...any) (value any, refusal redis.Error, err error) {
	value, err = l.do(cmd, args...)
	if errors.As(err, &refusal) {
		return nil, refusal, nil
	}
	return value, "", err
}

// tryWrite sets a key that is gone after a second. What refuses it refuses locks as well.
func (x *patient) tryWrite(l *link) error {
	_, refusal, err := try(l, "SET", scripts.Prefix(x.opts.Prefix).Bar("check of writes"), "0", "PX", "1000")
	if err != nil || refusal == "" {
		return err
	}
	do := map[string]string{
		"OOM":        "raise maxmemory, or keep other data elsewhere",
		"MISCONF":    "look into its log; make room on its disk, or switch snapshots off: CONFIG SET save \"\"",
		"NOREPLICAS": "CONFIG SET min-replicas-to-write 0: a master for locks has no replicas to wait for",
		"READONLY":   "name its master in its place",
		"BUSY":       "end the script that runs there: SCRIPT KILL",
		"NOPERM":     "", // told with the rights
	}
	code := replyCode(refusal)
	hint, known := do[code]
	if code == "NOPERM" {
		return nil
	}
	if !known {
		hint = "read what it says"
	}
	x.find(Failure, "writes", fmt.Sprintf("it refuses a write: %.200s", string(refusal)), noVote, hint)
	return nil
}

// tryRights tries each right that locks need.
func (x *patient) tryRights(l *link) error {
	p := scripts.Prefix(x.opts.Prefix)
	var needed, useful []string
	lacking := ""
	for _, r := range scripts.Rights {
		cmd, args := r.Probe(p)
		_, refusal, err := try(l, cmd, args...)
		if err != nil {
			return err
		}
		if refusal == "" || replyCode(refusal) != "NOPERM" && !unknownCommand(refusal) {
			continue
		}
		if unknownCommand(refusal) {
			r.Rule += " (renamed or unknown)"
		}
		if r.Lacking == "" {
			needed = append(needed, r.Rule)
			continue
		}
		useful = append(useful, r.Rule)
		if !strings.Contains(lacking, r.Lacking) {
			lacking = strings.TrimPrefix(lacking+"; "+r.Lacking, "; ")
		}
	}
	user := userName(x.m.cfg.user)
	do := fmt.Sprintf("grant what locks need: ACL SETUSER %s %s", user, p.Rule())
	if len(needed) > 0 {
		x.find(Failure, "rights", fmt.Sprintf("the user %q may not, on keys %s:*: %s", user, p, strings.Join(needed, ", ")),
			"no lock can be taken or kept there, so "+noVote, do)
	}
	if len(useful) > 0 {
		x.find(Warning, "rights", fmt.Sprintf("the user %q may not, on channels %s:*: %s", user, p, strings.Join(useful, ", ")), lacking, do)
	}
	return nil
}

func unknownCommand(reply redis.Error) bool {
	return strings.HasPrefix(strings.ToLower(string(reply)), "err unknown command")
}

// askPersistence looks at whether the master remembers every write, where somebody relies on it.
func (x *patient) askPersistence(l *link) error {
	durable := slices.Contains(x.opts.Durable, x.m.name)
	if !durable && !x.opts.Unguarded {
		return nil
	}
	settings := make(map[string]string)
	for _, name := range []string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite"} {
		value, refusal, err := try(l, "CONFIG", "GET", name)
		if err != nil {
			return err
		}
		pair, _ := redis.StringMap(value, nil)
		if refusal != "" || pair[name] == "" {
			x.find(Warning, "persistence", fmt.Sprintf("whether it remembers every write cannot be looked at: CONFIG GET %s is answered by %.120q", name, string(refusal)),
				"if it does not, a restart of it gives held locks away", "grant +config|get, or look at its configuration by hand")
			return nil
		}
		settings[name] = pair[name]
	}
	x.judgePersistence(durable, settings)
	return nil
}

// judgePersistence tells which setting lets a restart lose writes that were answered.
func (x *patient) judgePersistence(durable bool, settings map[string]string) {
	var wrong []string
	for _, want := range [][2]string{{"appendonly", "yes"}, {"appendfsync", "always"}, {"no-appendfsync-on-rewrite", "no"}} {
		if got := settings[want[0]]; got != want[1] {
			wrong = append(wrong, fmt.Sprintf("%s is %s, not %s", want[0], got, want[1]))
		}
	}
	if len(wrong) == 0 {
		return
	}
	why := "the restart guard is off"
	if durable {
		why = "it is named as durable, so it votes at once after a restart"
	}
	x.find(Failure, "persistence", strings.Join(wrong, "; ")+"; and "+why,
		"a restart forgets locks that are held, and gives them to a second holder",
		"set appendonly yes, appendfsync always and no-appendfsync-on-rewrite no, in its configuration file as well, or let the guard make it wait")
}
