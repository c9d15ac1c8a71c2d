package redlockfile

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// Follow makes locker use the masters of the file whenever they change. It blocks until ctx ends or locker is closed,
// so call it on a goroutine of its own. Held locks are kept. See Admin.Reconfigure of package admin for the
// configurations that may follow one another. If a configuration cannot be used, Follow logs the error once, with the
// logger of locker, reports it in [redlock.Stats] (FileUnusable), and tries again, since the masters may allow it
// later. It logs each change of the configuration, and that it can be used again, but not the first configuration. The
// other fields of the file are not read again.
//
// Follow reads the file once a second, so it does not matter how the file is replaced. It can follow a Kubernetes
// ConfigMap volume, unless the volume is mounted by subPath.
func Follow(ctx context.Context, locker *redlock.Locker, path string) {
	if ctx == nil {
		panic("redlockfile: Follow: the context is nil")
	}
	var given []redlock.Configuration // the last one, even if locker could not use it
	failed := false
	log, logged := client.SetOf(locker).Logger(), ""
	for {
		c, err := configfile.Read(path)
		if err == nil && given == nil && !slices.ContainsFunc(c.Configurations(), changes) {
			given = c.Configurations()
		}
		news := logged != "" // also if the file is what it was before an error
		if err == nil && (failed || !reflect.DeepEqual(c.Configurations(), given)) {
			news = news || given != nil // the first use is no news
			given = c.Configurations()
			err = use(ctx, locker, c)
			failed = err != nil
			if errors.Is(err, redlock.ErrClosed) {
				return
			}
		}
		if err == nil {
			if news {
				log.Info("redlock: using the masters of the file", "file", path, "epoch", c.Configurations()[0].Epoch,
					"list", strings.Join(client.SetOf(locker).Lists(), ","))
			}
			logged = ""
		}
		if ctx.Err() == nil {
			client.SetOf(locker).FileUnusable.Store(err != nil)
		}
		if err != nil && ctx.Err() == nil && err.Error() != logged {
			logged = err.Error()
			log.Warn("redlock: cannot use the masters of the file", "file", path, "error", client.Shortened(client.Plain(err)))
		}
		if client.SetOf(locker).Clients[0].Rest(ctx, time.Second) != nil {
			return
		}
	}
}

// changes reports whether the masters are being changed, or were changed before.
func changes(c redlock.Configuration) bool { return c.Epoch > 0 }

// use makes locker use the masters of c. It waits only a few seconds for a quarantine, since the file may change again.
func use(ctx context.Context, locker *redlock.Locker, c *configfile.Config) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return admin.Of(locker).Reconfigure(ctx, c.Configurations()...)
}
