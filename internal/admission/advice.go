package admission

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redlock-go/redlock/internal/scripts"
)

// The steps that errors about a master recommend. They follow the rules of the steps of package transport.
const (
	StepNothing = "nothing: it votes by itself after the quarantine, as long as a client that acquires locks is running"
	StepAgain   = "nothing: run `redlock check` again in a moment"
	StepOthers  = "follow the other advice first: this master waits for it"
	StepMaxTTL  = "`redlock max-ttl --set %v`"
	StepMasters = "follow the advice for the masters below"
	StepDown    = StepMasters + "; if masters are lost for good, redlock set FILE prints what to do"
	StepDurable = "%s, and the same in its configuration file; or leave it out of the durable masters of all clients, " +
		"and then replace its record (redlock quarantine --master %s)"
	StepNew = "no master has a record with this prefix (--prefix): if it is wrong, correct it; if the masters are new, " +
		"and no client has run yet, run `redlock admit` with the same masters; if they have restarted, wait while a " +
		"client runs"

	stepList = "correct the list of this client: name the masters of the record, by ?name= if they have other addresses " +
		"here; to change the masters, give redlock set a file with these as masters, the new list as next, and the " +
		"next epoch"
	stepStray = "unless a client needs that record, replace it: `redlock quarantine --master %s`, with the URLs of " +
		"all masters"
	stepEpoch   = "use the file of epoch %d, with the masters %s; redlock set FILE shows the next step of the change"
	stepBefore  = "run redlock set FILE with the file of this client: it shows what the change waits for"
	stepAbort   = "if it is to be cancelled, run redlock set --abort with the file of epoch %d; if not, use that file here"
	stepShards  = "configure this client with the shards of the other clients; only redlock admit --from changes them"
	stepBacklog = "`CONFIG SET repl-backlog-ttl %d`"
)

// setClock is the instruction for a wrong clock. Admin.Check detects wrong clocks by itself, and then omits this
// text.
const setClock = "stop this server, set its clock, and start it after the max TTL has passed: if the clock of a " +
	"running server jumps, its locks can end early"

// durableSettings returns the commands that change lossy settings to those of a durable master.
func durableSettings(lossy string) string {
	var commands []string
	for _, name := range []string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite"} {
		value := map[string]string{"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}[name]
		if strings.HasPrefix(lossy, name+" ") || strings.Contains(lossy, ", "+name+" ") {
			commands = append(commands, fmt.Sprintf("`CONFIG SET %s %s`", name, value))
		}
	}
	return strings.Join(commands, ", ")
}

// advised is an error and the instruction that fixes its cause.
type advised struct {
	error
	step string // "" if nothing is to be done
	list bool   // whether the cause is the list of this client
	soon bool   // whether the cause ends within a second in a change of the masters that goes on
}

// Error implements error.
func (e *advised) Error() string {
	if e.step == "" {
		return e.error.Error()
	}
	return e.error.Error() + "; " + e.step
}

// Unwrap returns the error without the instruction.
func (e *advised) Unwrap() error { return e.error }

func advise(err error, step string, args ...any) error {
	return &advised{error: err, step: fmt.Sprintf(step, args...)}
}

func adviseList(err error, step string, args ...any) error {
	return &advised{error: err, step: fmt.Sprintf(step, args...), list: true}
}

// Names reports whether record r lists a master with this name.
func Names(r *scripts.Record, name string) bool {
	return slices.Contains(strings.Split(r.Masters+","+r.Next, ","), scripts.Escape(name))
}

// WrongList reports whether err says that the list of this client is wrong or out of date.
func WrongList(err error) bool {
	e := (*advised)(nil)
	return errors.As(err, &e) && e.list
}

// EndsSoon reports whether the cause of err ends within a second in a change of the masters that goes on.
func EndsSoon(err error) bool {
	e := (*advised)(nil)
	return errors.As(err, &e) && e.soon
}

// Advice splits err into its cause and its instruction. An error without an instruction has [StepOthers].
//
//nolint:staticcheck // ST1008: the cause is a result, not a failure of this function
func Advice(err error) (cause error, step string) {
	if e := (*advised)(nil); errors.As(err, &e) {
		return e.error, cmp.Or(e.step, StepAgain)
	}
	return err, StepOthers
}
