package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockfile"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// mastersVariable is the environment variable with the URLs of the masters.
const mastersVariable = "REDLOCK_MASTERS"

// deploymentFlags holds the flags that select the deployment.
type deploymentFlags struct {
	config        string
	masters       []string
	prefix        string
	maxTTL        time.Duration
	durable       string
	ca, cert, key string
	sentinelUser  string
	sentinelFile  string
	timeout       time.Duration // limit of the whole command
	fromFile      bool          // the masters come from config, a regular file
	given         string        // see givenTo
}

func (f *deploymentFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", "", "JSON file with the masters and their credentials")
	flags.StringArrayVar(&f.masters, "masters", nil, "URLs of all masters, separated by spaces")
	flags.StringVar(&f.prefix, "prefix", scripts.DefaultPrefix, "key prefix")
	flags.DurationVar(&f.maxTTL, "max-ttl", scripts.DefaultMaxTTL,
		"max TTL to set if the deployment has none yet; 0 if its clients use WithoutRestartGuard")
	flags.StringVar(&f.durable, "durable", "",
		"comma-separated addresses of the durable masters, as shown by status, or \"all\"")
	flags.StringVar(&f.sentinelUser, "sentinel-user", "", "ACL user for the sentinels")
	flags.StringVar(&f.sentinelFile, "sentinel-password-file", "", "file with the password for the sentinels")
	flags.StringVar(&f.ca, "ca", "", "PEM file of the certificate authorities for the masters and sentinels")
	flags.StringVar(&f.cert, "cert", "", "PEM file of this client's certificate")
	flags.StringVar(&f.key, "key", "", "PEM file of this client's private key")
}

// addTimeout adds the flag --timeout.
func (f *deploymentFlags) addTimeout(flags *pflag.FlagSet) {
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "time limit of the whole command")
}

// read combines the settings in the arguments, the flags, the file and the environment. args are the URLs in the
// arguments.
func (f *deploymentFlags) read(cmd *cobra.Command, args []string) (*configfile.Config, error) {
	c := configfile.New()
	if f.config != "" {
		var err error
		if c, err = configfile.Read(f.config); err != nil {
			return nil, err
		}
		info, err := os.Stat(f.config)
		f.fromFile = err == nil && info.Mode().IsRegular() && (len(c.Masters) > 0 || len(c.Shards) > 0) // not a pipe
	}
	for _, arg := range args {
		if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is a file, not the URL of a master: use --config %s", arg, arg)
		}
	}
	if len(f.masters) > 0 && slices.ContainsFunc(beforeDash(cmd), isURL) {
		return nil, errors.New("an argument is the URL of a master, besides --masters: quote the list, as in --masters " +
			"\"$M\"; without quotes, the shell passes only its first URL")
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
		return nil, fmt.Errorf("no masters: give their URLs with --masters, in the --config file, or in %s", mastersVariable)
	}
	f.override(cmd.Flags(), c)
	return c, nil
}

// beforeDash returns the arguments of cmd, without those after "--".
func beforeDash(cmd *cobra.Command) []string {
	args := cmd.Flags().Args()
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		return args[:dash]
	}
	return args
}

// isURL reports whether arg is the URL of a master.
func isURL(arg string) bool {
	m := transport.URL(arg)
	return m.Err() == nil
}

// override replaces settings of the file with the values of the flags that were given.
func (f *deploymentFlags) override(flags *pflag.FlagSet, c *configfile.Config) {
	f.given = givenTo(flags)
	for name, to := range map[string]*string{
		"prefix": &c.Prefix, "ca": &c.CA, "cert": &c.Cert, "key": &c.Key, "sentinel-user": &c.SentinelUser,
		"sentinel-password-file": &c.SentinelPasswordFile,
	} {
		if flags.Changed(name) {
			*to = flags.Lookup(name).Value.String()
		}
	}
	if flags.Changed("sentinel-password-file") {
		c.SentinelPassword = ""
	}
	if flags.Changed("durable") {
		c.Durable = strings.Split(f.durable, ",")
	}
	if flags.Changed("max-ttl") {
		c.MaxTTL = f.maxTTL.String()
	}
	c.Run = helpers.wait
}

// setArguments returns the arguments with which "redlock set" is about the same deployment, for a shell; "" without a
// file.
func (f *deploymentFlags) setArguments() string {
	if f.config == "" {
		return ""
	}
	return strings.TrimSpace(f.given + " " + shellQuoted(f.config))
}

// givenTo returns the flags, among those that override applies, that were given, for a shell. Each begins with a space.
func givenTo(flags *pflag.FlagSet) (words string) {
	for _, name := range []string{
		"prefix", "max-ttl", "durable", "ca", "cert", "key", "sentinel-user", "sentinel-password-file",
	} {
		if flags.Changed(name) {
			words += " --" + name + " " + shellQuoted(flags.Lookup(name).Value.String())
		}
	}
	return words
}

var commaURL = regexp.MustCompile(`,([a-z+]+://)`)

// splitURLs splits texts at spaces, and at commas before a URL.
func splitURLs(texts []string) (urls []string) {
	for _, text := range texts {
		urls = append(urls, strings.Fields(commaURL.ReplaceAllString(text, " $1"))...)
	}
	return urls
}

// observer is the option of a Locker that writes no admission records.
var observer = clients.AsObserver()

// A client is a Locker with the settings from which it was created, and the connections of its shards.
type client struct {
	*redlock.Locker
	set     *clients.Set
	config  *configfile.Config
	pools   []*transport.Transport // one for each shard
	timeout time.Duration          // limit of one operation
	shut    func()
	console *console // shows the progress
}

// open creates a client.
func (f *deploymentFlags) open(c *configfile.Config, opts ...redlock.Option) (*client, error) {
	silent := redlock.WithLogger(slog.New(slog.DiscardHandler)) // the command prints its own reports
	l, err := c.Open(append([]redlock.Option{silent}, opts...)...)
	if err != nil {
		return nil, err
	}
	set := clients.SetOf(l)
	var pools []*transport.Transport
	for _, c := range set.Clients {
		pools = append(pools, c.Transport())
	}
	shut := func() { _ = l.Close() } // undelivered releases expire with their TTLs
	return &client{l, set, c, pools, f.timeout, shut, new(console)}, nil
}

// openFollowing creates a client. If the masters come from the file of --config, the client applies changes of the file
// until it is closed.
func (f *deploymentFlags) openFollowing(c *configfile.Config, opts ...redlock.Option) (*client, error) {
	l, err := f.open(c, opts...)
	if err != nil || !f.fromFile {
		return l, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go redlockfile.Follow(ctx, l.Locker, f.config)
	shut := l.shut
	l.shut = func() {
		cancel()
		shut()
	}
	return l, nil
}

// close closes the Locker.
func (c *client) close() { c.shut() }

// abandon makes close leave held locks on the masters, until their TTLs have passed.
func (c *client) abandon() {
	c.shut = func() {}
}

// within returns a context that limits one operation to c.timeout. Call within again after a question to the user,
// because the answer may take longer.
func (c *client) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), c.timeout)
}

// settled waits until each master has answered or is known to be down, or ctx ends, and returns the verdict of that
// moment.
func (c *client) settled(ctx context.Context) redlockinfo.Verdict {
	defer c.console.progress(c.pending)()
	c.set.AwaitKnown(ctx)
	return c.set.Verdict()
}

// observe calls work with a client that writes no admission records. urls are the URLs in the arguments.
func (a *app) observe(cmd *cobra.Command, urls []string, work func(*client) error) error {
	c, err := a.deployment.read(cmd, urls)
	if err != nil {
		return wrongCall(cmd, err)
	}
	return a.observeConfig(cmd, c, work)
}

func (a *app) observeConfig(cmd *cobra.Command, c *configfile.Config, work func(*client) error) error {
	l, err := a.deployment.open(c, observer)
	if err != nil {
		return wrongCall(cmd, err)
	}
	defer l.close()
	l.console = &a.console
	return work(l)
}

// beside calls work with a second client that writes no admission records, for another layout.
func (a *app) beside(c *configfile.Config, work func(*client) error) error {
	l, err := a.deployment.open(c, observer)
	if err != nil {
		return err
	}
	defer l.close()
	l.console = &a.console
	return work(l)
}

// onMasters makes cmd run operation. The arguments of cmd are URLs of masters.
func (a *app) onMasters(cmd *cobra.Command, operation func(context.Context, *client) error) *cobra.Command {
	return a.onSome(cmd, func(ctx context.Context, c *client) error {
		a.warn(c.set.Warnings())
		return operation(ctx, c)
	})
}

// onSome is onMasters for a command whose masters may be only some of those of a deployment. The operation prints the
// warnings about the configuration.
func (a *app) onSome(cmd *cobra.Command, operation func(context.Context, *client) error) *cobra.Command {
	a.deployment.addTimeout(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.observe(cmd, args, a.bounded(operation)) }
	return cmd
}

// warn prints warnings about the configuration.
func (a *app) warn(warnings []string) {
	for _, w := range warnings {
		a.complain(errors.New(w))
	}
}

// bounded returns a function for observe, which runs operation within the timeout.
func (a *app) bounded(operation func(context.Context, *client) error) func(*client) error {
	return func(c *client) error {
		ctx, cancel := c.within()
		defer cancel()
		return operation(ctx, c)
	}
}
