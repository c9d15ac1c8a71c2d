package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockfile"
)

// mastersVariable is the environment variable with the masters.
const mastersVariable = "REDLOCK_MASTERS"

// deploymentFlags are the flags that select the deployment.
type deploymentFlags struct {
	config        string
	masters       []string
	prefix        string
	guard         time.Duration
	durable       string
	ca, cert, key string
	timeout       time.Duration // for most commands
	fromFile      bool          // the masters are those of config
}

func (f *deploymentFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", "", "file with the masters and their credentials")
	flags.StringArrayVar(&f.masters, "masters", nil, "URLs of all masters, with spaces between them")
	flags.StringVar(&f.prefix, "prefix", private.DefaultPrefix, "key prefix")
	flags.DurationVar(&f.guard, "guard", private.DefaultMaxTTL,
		"max TTL of a deployment that has none yet; 0 for clients with WithoutRestartGuard")
	flags.StringVar(&f.durable, "durable", "",
		"comma-separated addresses of durable masters, as status shows them, or all")
	flags.StringVar(&f.ca, "ca", "", "file of certificate authorities (PEM) for the masters")
	flags.StringVar(&f.cert, "cert", "", "file of this client's certificate (PEM)")
	flags.StringVar(&f.key, "key", "", "file of this client's key (PEM)")
}

// addTimeout adds the flag that bounds a whole command.
func (f *deploymentFlags) addTimeout(flags *pflag.FlagSet) {
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "bound on the whole command")
}

// readDeployment combines all settings of the deployment; args are URLs.
func (f *deploymentFlags) readDeployment(cmd *cobra.Command, args []string) (*configfile.Config, error) {
	c := configfile.New()
	if f.config != "" {
		var err error
		if c, err = configfile.Read(f.config); err != nil {
			return nil, err
		}
		info, err := os.Stat(f.config)
		f.fromFile = err == nil && info.Mode().IsRegular() && (len(c.Masters) > 0 || len(c.Shards) > 0) // no pipe of a shell
	}
	for _, list := range [][]string{args, f.masters} {
		if urls := splitURLs(list); len(urls) > 0 {
			c.Name(urls)
			f.fromFile = false
			break
		}
	}
	if len(c.Masters) == 0 && len(c.Shards) == 0 {
		c.Name(splitURLs([]string{os.Getenv(mastersVariable)}))
	}
	if len(c.Masters) == 0 && len(c.Shards) == 0 {
		return nil, fmt.Errorf("no masters: give their URLs as arguments, by --masters, "+
			"in the file of --config, or in %s", mastersVariable)
	}
	f.override(cmd.Flags(), c)
	return c, nil
}

// override replaces settings of the file by flags that were given.
func (f *deploymentFlags) override(flags *pflag.FlagSet, c *configfile.Config) {
	for name, to := range map[string]*string{"prefix": &c.Prefix, "ca": &c.CA, "cert": &c.Cert, "key": &c.Key} {
		if flags.Changed(name) {
			*to = flags.Lookup(name).Value.String()
		}
	}
	if flags.Changed("durable") {
		c.Durable = strings.Split(f.durable, ",")
	}
	if flags.Changed("guard") {
		c.Guard = f.guard.String()
	}
	c.Run = helpers.run
}

var commaURL = regexp.MustCompile(`,([a-z+]+://)`)

// splitURLs splits texts at spaces, and at commas before a URL.
func splitURLs(texts []string) (urls []string) {
	for _, text := range texts {
		urls = append(urls, strings.Fields(commaURL.ReplaceAllString(text, " $1"))...)
	}
	return urls
}

// observer makes a Locker that writes no admission records.
var observer = private.Option[redlock.Option](private.Settings{Observer: true})

// open makes the pools and the Lockers of the deployment. shut ends them, and waits for that until ctx ends.
func (a *app) open(
	c *configfile.Config, opts ...redlock.Option,
) (l *redlock.Locker, shut func(context.Context), err error) {
	l, _, shut, err = a.openPools(c, opts...)
	return l, shut, err
}

// openFollowing opens like open, and follows the masters of the file of --config until shut is called.
func (a *app) openFollowing(
	c *configfile.Config, opts ...redlock.Option,
) (l *redlock.Locker, shut func(context.Context), err error) {
	l, end, err := a.open(c, opts...)
	if err != nil || !a.deployment.fromFile {
		return l, end, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go redlockfile.Follow(ctx, l, a.deployment.config)
	return l, func(ctx context.Context) { cancel(); end(ctx) }, nil
}

// observe calls f with a Locker that writes nothing by itself. args are the URLs of the masters. f returns the exit
// status.
func (a *app) observe(
	cmd *cobra.Command, args []string, f func(ctx context.Context, l *redlock.Locker, c *configfile.Config) int,
) error {
	return a.operate(cmd, args, func(ctx context.Context, l *redlock.Locker, c *configfile.Config, _ []*pool.Pool) int {
		return f(ctx, l, c)
	})
}

// operate calls f like observe, with the pools as well.
func (a *app) operate(
	cmd *cobra.Command, args []string,
	f func(ctx context.Context, l *redlock.Locker, c *configfile.Config, pools []*pool.Pool) int,
) error {
	c, err := a.deployment.readDeployment(cmd, args)
	if err != nil {
		return wrongCall(cmd, err)
	}
	return a.observeDeployment(cmd, c, f)
}

func (a *app) observeDeployment(
	cmd *cobra.Command, c *configfile.Config,
	f func(ctx context.Context, l *redlock.Locker, c *configfile.Config, pools []*pool.Pool) int,
) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), a.deployment.timeout)
	defer cancel()
	l, pools, shut, err := a.openPools(c, observer)
	if err != nil {
		return wrongCall(cmd, err)
	}
	defer shut(ctx)
	for _, w := range private.Of(l).Warnings() {
		a.complain(errors.New(w))
	}
	return leave(f(ctx, l, c, pools))
}

// openPools makes the Locker and its pools, one for each shard. shut closes them.
func (a *app) openPools(
	c *configfile.Config, opts ...redlock.Option,
) (l *redlock.Locker, pools []*pool.Pool, shut func(context.Context), err error) {
	silent := redlock.WithLogger(slog.New(slog.DiscardHandler)) // the command prints its own reports
	l, pools, end, err := c.Open(append([]redlock.Option{silent}, opts...)...)
	if err != nil {
		return nil, nil, nil, err
	}
	return l, pools, func(ctx context.Context) { _ = end(ctx) }, nil // undelivered releases expire
}
