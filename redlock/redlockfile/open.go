package redlockfile

import (
	"context"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/redlock"
)

// Open reads the file and makes a Locker with its masters and options. opts take precedence over the options of the
// file. Open does not block, and succeeds even if no master is up. Open does not notice later changes of the file;
// [Follow] does.
//
// shut closes the Locker, then its connections. The caller must call shut once, when the work that needs locks has
// ended.
func Open(path string, opts ...redlock.Option) (
	locker *redlock.Locker, shut func(ctx context.Context) error, err error,
) {
	c, err := configfile.Read(path)
	if err != nil {
		return nil, nil, err
	}
	locker, _, shut, err = c.Open(opts...)
	return locker, shut, err
}
