package redlockfile

import (
	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/redlock"
)

// Open reads the file and makes a Locker with its masters and options, as [redlock.Open] does. opts take precedence
// over the options of the file. Open does not block, and succeeds even if no master is up. Open does not notice later
// changes of the file; [Follow] does.
func Open(path string, opts ...redlock.Option) (*redlock.Locker, error) {
	c, err := configfile.Read(path)
	if err != nil {
		return nil, err
	}
	return c.Open(opts...)
}
