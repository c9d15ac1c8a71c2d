package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

func whoCommand(a *app) *cobra.Command {
	var watch bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "who [URL...] NAME...",
		Short: "show the holder of a name, and its waiters",
		Long: `Shows the holder of each name: the label, the start of the hold, the time until the lock expires unless it is
extended, the token, the value that the holder has set, and the number of masters that have the lock. It also shows
the waiters: place, label and waiting time. It writes nothing.

Of a semaphore it shows each slot.

A name is free only if a majority of the masters votes, and has no lease of it. Masters in quarantine may have
forgotten a lease whose client, although it was paused or cut off, still holds the name. While too few masters vote,
it is unknown whether a name is held; the command then shows which masters have a lease.

The output is a snapshot: do not use it to decide whether an action is safe. The queue is merged from the first ten
waiters of each master. All calls of a client that wait for the name are one waiter. A waiter that has died stays in
the queue for about twenty seconds.

With --watch, the command polls the masters, and prints each change, until it is interrupted.

Exit status: 0 if each name is held or free; 1 if that is unknown for a name; 2 if fewer masters than a quorum
answered.`,
		Example: `  redlock who --config locks.json nightly-report
  redlock who --watch deploy`,
		Args: func(_ *cobra.Command, args []string) error {
			_, names := cutURLs(args)
			if len(names) == 0 {
				return errors.New("redlock who: give the name of a lock")
			}
			return checkNames(names)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			urls, names := cutURLs(args)
			if every < 100*time.Millisecond {
				return wrongCall(cmd, fmt.Errorf("--every %v: must be at least 100ms", every))
			}
			return a.observe(cmd, urls, func(c *client) error {
				ctx, stop := cmd.Context(), func() {}
				if watch {
					endAtBrokenPipes()
					ctx, stop = signal.NotifyContext(ctx, interrupts...)
				}
				defer stop()
				return who(ctx, &a.console, c, names, watch, every)
			})
		},
	}
	a.deployment.addTimeout(cmd.Flags())
	cmd.Flags().BoolVar(&watch, "watch", false, "poll, and print changes, until interrupted")
	cmd.Flags().DurationVar(&every, "every", time.Second, "polling interval of --watch")
	return cmd
}

// cutURLs splits args into the URLs of masters at the beginning, and the names of locks after the URLs. A slash
// separates the masters of two shards.
func cutURLs(args []string) (urls, names []string) {
	for len(args) > 0 && (strings.Contains(args[0], "://") || len(urls) > 0 && args[0] == "/") {
		urls, args = append(urls, args[0]), args[1:]
	}
	return urls, args
}

// checkNames returns an error if a name is not valid.
func checkNames(names []string) error {
	for _, name := range names {
		if err := scripts.CheckName(name); err != nil {
			return fmt.Errorf("redlock: %w", err)
		}
	}
	return nil
}

// who prints the state of each name: once, or, if watch is set, whenever the state changes, until ctx ends.
func who(ctx context.Context, con *console, c *client, names []string, watch bool, every time.Duration) error {
	last := make(map[string]string)
	wrong := c.wrongList(ctx)
	if wrong != nil {
		con.complain(fmt.Errorf("redlock who: %w", wrong))
		wrong = leave(exitNoQuorum)
	}
	for {
		failed := wrong
		for _, name := range names {
			looking, cancel := context.WithTimeout(ctx, c.timeout)
			w, err := c.Inspect(looking, name)
			cancel()
			switch {
			case err != nil:
				failed = leave(exitNoQuorum)
			case failed == nil && unknown(&w):
				failed = leave(exitDanger)
			}
			state := fmt.Sprint(err, w.ID, w.On, w.Answered, w.ReaderCount, w.Value, labels(w), w.Free, w.Quarantined,
				len(w.Partial))
			for _, slot := range w.Slots {
				state += fmt.Sprint(slot.ID, slot.On, slot.Value, slot.Free)
			}
			if ctx.Err() != nil || watch && state == last[name] {
				continue
			}
			last[name] = state
			if watch && !con.json {
				fmt.Fprint(con.stdout, time.Now().Format(time.TimeOnly), " ")
			}
			if err != nil {
				con.complain(err)
				continue
			}
			con.result(newJSONWho(name, w), whoText(name, w))
		}
		if !watch {
			return failed
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return nil
		}
	}
}

// wrongList returns the error of a master whose record shows that this command has a wrong list of masters. With a
// wrong list, the replies do not describe the deployment that the clients use.
func (c *client) wrongList(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	c.settled(ctx)
	return c.set.WrongList()
}

// unknown reports whether a client may hold the name, although no lease has a quorum.
func unknown(w *redlockinfo.Inspection) bool {
	return w.ID == "" && w.ReaderCount == 0 && !w.Free && len(heldSlots(w)) == 0
}

// heldSlots returns the numbers of the slots of a semaphore that are held.
func heldSlots(w *redlockinfo.Inspection) (list []int) {
	for i := range w.Slots {
		if w.Slots[i].ID != "" {
			list = append(list, i+1)
		}
	}
	return list
}

// doubt returns why it is unknown whether a client holds a name.
func doubt(w *redlockinfo.Inspection) string {
	var parts []string
	for _, l := range w.Partial {
		parts = append(parts, fmt.Sprintf("%d of %d masters have it (%s, %v left)", l.On, w.N, l.Label,
			max(0, l.Left).Round(time.Second)))
	}
	switch w.Quarantined {
	case 0:
	case 1:
		parts = append(parts, "1 does not vote and may have forgotten it")
	default:
		parts = append(parts, fmt.Sprintf("%d do not vote and may have forgotten it", w.Quarantined))
	}
	if silent := w.N - w.Answered; silent > 0 {
		parts = append(parts, fmt.Sprintf("%d did not answer", silent))
	}
	return strings.Join(parts, "; ")
}

func labels(w redlockinfo.Inspection) (list []string) {
	for _, q := range w.Waiters {
		list = append(list, q.Label)
	}
	return list
}

// The output of --json for a name.
type (
	jsonWho struct {
		Name    string       `json:"name"`
		Held    bool         `json:"held"`           // also true if Kept is true, or for a reader, or a slot
		Kept    bool         `json:"kept"`           // unlocked, but unavailable until the minimum hold has passed
		Free    bool         `json:"free"`           // neither held nor free: unknown, see Partial and Quarantined
		Idle    bool         `json:"idle,omitempty"` // may be unused; then its client releases it for another client
		Lease   string       `json:"lease,omitempty"`
		Label   string       `json:"label,omitempty"`
		Since   *time.Time   `json:"since,omitempty"`
		Left    int64        `json:"left_ms,omitempty"`
		Token   int64        `json:"token,omitempty"`
		Value   string       `json:"value,omitempty"` // set by the holder with Lock.SetValue
		On      int          `json:"on"`
		Masters int          `json:"masters"`
		Waiters int          `json:"waiters"`
		Queue   []jsonWaiter `json:"queue"`
		Readers int          `json:"readers"` // number of readers of a readers-writer lock
		ReadBy  []jsonReader `json:"read_by,omitempty"`
		// Partial are the leases that fewer masters than a quorum have.
		Partial     []jsonLease `json:"partial,omitempty"`
		Slots       []jsonWho   `json:"slots,omitempty"`       // of a semaphore
		Quarantined int         `json:"quarantined,omitempty"` // number of masters that may have forgotten leases
	}
	jsonLease struct {
		Lease string `json:"lease"`
		Label string `json:"label"`
		Left  int64  `json:"left_ms"`
		On    int    `json:"on"`
	}
	jsonReader struct {
		Lease string     `json:"lease"`
		Label string     `json:"label"`
		Since *time.Time `json:"since,omitempty"`
		On    int        `json:"on"`
	}
	jsonWaiter struct {
		Place int    `json:"place"`
		Label string `json:"label"`
		For   int64  `json:"for_ms"`
	}
)

func newJSONWho(name string, w redlockinfo.Inspection) jsonWho {
	j := jsonWho{
		Name: name, Free: w.Free, Kept: w.Kept, Lease: w.ID, Label: w.Label, Left: millis(w.Left),
		Token: w.Token, Value: w.Value, On: w.On, Masters: w.N, Waiters: w.WaiterCount,
		Queue:   make([]jsonWaiter, 0, len(w.Waiters)),
		Readers: w.ReaderCount, Quarantined: w.Quarantined,
	}
	for _, l := range w.Partial {
		j.Partial = append(j.Partial, jsonLease{l.ID, l.Label, millis(l.Left), l.On})
	}
	for _, r := range w.Readers {
		j.ReadBy = append(j.ReadBy, jsonReader{r.ID, r.Label, known(r.Since), r.On})
	}
	for _, s := range w.Slots {
		j.Slots = append(j.Slots, newJSONWho(name, s))
	}
	j.Held, j.Since = w.ID != "" || len(severalHolders(&w)) > 0, known(w.Since)
	for i, q := range w.Waiters {
		j.Queue = append(j.Queue, jsonWaiter{i + 1, q.Label, millis(time.Since(q.Since))})
	}
	return j
}

// known returns t, or nil for the zero time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// inUTC returns a time as it is in all texts.
func inUTC(t time.Time) string { return t.UTC().Format(time.DateTime + " MST") }

// since returns " since" with the time, or "" for the zero time.
func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + inUTC(t)
}

// whoText returns the holder and the waiters of a name as text.
func whoText(name string, w redlockinfo.Inspection) string {
	var text strings.Builder
	if len(w.Slots) > 0 {
		fmt.Fprintf(&text, "%q: semaphore of %d, %d slots held\n", name, len(w.Slots), len(heldSlots(&w)))
		for i := range w.Slots {
			fmt.Fprintf(&text, "  slot %d: %s\n", i+1, holderText(&w.Slots[i]))
		}
	} else {
		fmt.Fprintf(&text, "%q: %s\n", name, holderText(&w))
	}
	for i, q := range w.Waiters {
		fmt.Fprintf(&text, "  %2d. %q waits for %v\n", i+1, q.Label, time.Since(q.Since).Round(time.Second))
	}
	if more := w.WaiterCount - len(w.Waiters); more > 0 {
		fmt.Fprintf(&text, "  and %d more\n", more)
	}
	return text.String()
}

// holderText returns the holder of a name, or of a slot, as text.
func holderText(w *redlockinfo.Inspection) string {
	var text strings.Builder
	left := max(0, w.Left).Round(time.Millisecond)
	switch {
	case w.ReaderCount > 0:
		fmt.Fprintf(&text, "held by %s", transport.Count(w.ReaderCount, "reader"))
		for _, r := range w.Readers {
			fmt.Fprintf(&text, "\n   - %q reads%s, on %d of %d masters", r.Label, since(r.Since), r.On, w.N)
		}
	case unknown(w):
		fmt.Fprintf(&text, "it is unknown whether a client holds it: %s", doubt(w))
	case w.ID == "":
		fmt.Fprintf(&text, "no client holds it, according to %d of %d masters", w.Answered-w.Quarantined, w.N)
	case w.Kept:
		fmt.Fprintf(&text, "unlocked by %q, which had held it%s; unavailable for another %v (minimum hold), token %d, "+
			"on %d of %d masters", w.Label, since(w.Since), left, w.Token, w.On, w.N)
	case w.Token == 0:
		fmt.Fprintf(&text, "held by the writer %q%s, %v left, on %d of %d masters",
			w.Label, since(w.Since), left, w.On, w.N)
	default:
		unused, value := "", ""
		if w.Idle {
			unused = "; it may be unused: its holder then releases it for another client"
		}
		if w.Value != "" {
			value = fmt.Sprintf(", value %q", w.Value)
		}
		fmt.Fprintf(&text, "held by %q%s, %v left, token %d%s, on %d of %d masters%s", w.Label, since(w.Since),
			left, w.Token, value, w.On, w.N, unused)
	}
	return text.String()
}
