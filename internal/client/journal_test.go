package client

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/dispatch"
	"github.com/redlock-go/redlock/internal/quorum"
)

// H101: in an outage each waiting call makes sure that the outage will be logged, but does not count the waiting
// calls. With fifty thousand calls, all these counts took minutes, during which the local queue was locked.
func TestStarvedCallsDoNotCountOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counted atomic.Int32
		log := new(bytes.Buffer)
		j := &journal{
			Queue:    dispatch.New(slog.NewTextHandler(log, nil), slog.String("label", "web-1")),
			shortage: func() []slog.Attr { counted.Add(1); return []slog.Attr{} },
			view:     func() *admission.View { return &admission.View{Config: &quorum.Config{}} },
		}
		defer j.close()
		for range 1000 {
			j.starved()
		}
		if n := counted.Load(); n != 0 {
			t.Errorf("the waiting calls were counted %d times", n)
		}
		time.Sleep(time.Minute) // virtual time
		synctest.Wait()
		if counted.Load() == 0 || !strings.Contains(log.String(), "no lock can be acquired") {
			t.Errorf("after a minute the waiting calls were counted %d times, and the log is %q", counted.Load(), log)
		}
	})
}
