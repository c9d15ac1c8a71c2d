package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
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
}

func (f *deploymentFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", "", "file with the masters and their credentials")
	flags.StringArrayVar(&f.masters, "masters", nil, "URLs of all masters, with spaces between them")
	flags.StringVar(&f.prefix, "prefix", private.DefaultPrefix, "what the keys begin with")
	flags.DurationVar(&f.guard, "guard", private.DefaultMaxTTL,
		"max TTL of a deployment that has none yet; 0 for clients with WithoutRestartGuard")
	flags.StringVar(&f.durable, "durable", "",
		"addresses of masters that remember every write, as status names them, with commas between, or all")
	flags.StringVar(&f.ca, "ca", "", "file of certificates (PEM) that those of the masters are checked with")
	flags.StringVar(&f.cert, "cert", "", "file of this client's certificate (PEM)")
	flags.StringVar(&f.key, "key", "", "file of this client's key (PEM)")
}

// addTimeout adds the flag that bounds a whole command.
func (f *deploymentFlags) addTimeout(flags *pflag.FlagSet) {
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "bound on the whole command")
}

// A deploymentConfig combines flags, file and environment for one deployment.
type deploymentConfig struct {
	redlock.Configuration
	Shard           string    `json:"shard"`  // that the masters are, as 2/3
	Shards          shardSets `json:"shards"` // in the place of the masters
	Prefix          string    `json:"prefix"`
	Guard           string    `json:"guard"`
	Durable         []string  `json:"durable"`
	User            string    `json:"user"`
	Password        string    `json:"password"`
	PasswordFile    string    `json:"passwordFile"`    // read for each connection
	PasswordCommand []string  `json:"passwordCommand"` // program and arguments, run for each connection
	CA              string    `json:"ca"`
	Cert            string    `json:"cert"`
	Key             string    `json:"key"`

	guard    time.Duration
	ownGuard bool   // the max TTL was given, and is that of the clients
	useSet   bool   // the masters are being changed, with Epoch and Next
	shard    [2]int // parsed from Shard: number and total
}

// readDeployment combines all settings of the deployment; args are URLs.
func (f *deploymentFlags) readDeployment(cmd *cobra.Command, args []string) (*deploymentConfig, error) {
	c := &deploymentConfig{Prefix: private.DefaultPrefix}
	if f.config != "" {
		if err := c.readFile(f.config); err != nil {
			return nil, err
		}
	}
	for _, list := range [][]string{args, f.masters} {
		if urls := splitURLs(list); len(urls) > 0 {
			c.name(urls)
			break
		}
	}
	if len(c.Masters) == 0 && len(c.Shards) == 0 {
		c.name(splitURLs([]string{os.Getenv(mastersVariable)}))
	}
	if len(c.Masters) == 0 && len(c.Shards) == 0 {
		return nil, fmt.Errorf("no masters are named: give their URLs as arguments or by --masters, "+
			"in the file of --config, or in %s", mastersVariable)
	}
	return c, f.override(cmd.Flags(), c)
}

// override replaces settings of the file by flags that were given.
func (f *deploymentFlags) override(flags *pflag.FlagSet, c *deploymentConfig) (err error) {
	for name, to := range map[string]*string{"prefix": &c.Prefix, "ca": &c.CA, "cert": &c.Cert, "key": &c.Key} {
		if flags.Changed(name) {
			*to = flags.Lookup(name).Value.String()
		}
	}
	if flags.Changed("durable") {
		c.Durable = strings.Split(f.durable, ",")
	}
	c.guard, c.ownGuard = f.guard, flags.Changed("guard")
	if !c.ownGuard && c.Guard != "" {
		c.ownGuard = true
		if c.guard, err = time.ParseDuration(c.Guard); err != nil {
			return fmt.Errorf("the max TTL in %s: %w", f.config, err)
		}
	}
	return nil
}

// readFile reads the file of --config, or of "set".
func (c *deploymentConfig) readFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return fmt.Errorf("%s: this is no set of masters: %w", path, err)
	}
	if d.More() {
		return fmt.Errorf("%s: there is something behind the set of masters", path)
	}
	if err := c.checkPassword(path); err != nil {
		return err
	}
	paths := []*string{&c.CA, &c.Cert, &c.Key, &c.PasswordFile}
	if program := c.PasswordCommand; program != nil && filepath.Base(program[0]) != program[0] {
		paths = append(paths, &program[0]) // a name without a directory is looked up in PATH
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	if err := c.checkShards(path); err != nil {
		return err
	}
	if c.useSet = c.Epoch != 0 || len(c.Next) > 0; !c.useSet {
		return nil
	}
	return c.checkSet(path)
}

// checkSet checks the epoch and the related fields.
func (c *deploymentConfig) checkSet(path string) error {
	text, err := json.Marshal(c.Configuration)
	if err != nil {
		return err
	}
	if _, err := redlock.ParseConfiguration(text); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

var commaURL = regexp.MustCompile(`,([a-z+]+://)`)

// splitURLs splits texts at spaces, and at commas before a URL.
func splitURLs(texts []string) (urls []string) {
	for _, text := range texts {
		urls = append(urls, strings.Fields(commaURL.ReplaceAllString(text, " $1"))...)
	}
	return urls
}

// dial makes the pool, or those of the buckets of a cluster.
func (c *deploymentConfig) dial() ([]*pool.Pool, error) {
	opts := c.credentials()
	if c.CA != "" || c.Cert != "" || c.Key != "" {
		t, err := c.tls()
		if err != nil {
			return nil, err
		}
		opts = append(opts, pool.WithTLSConfig(t))
	}
	var urls []string
	for _, u := range slices.Concat(c.Masters, c.Next) {
		if !c.useSet || !slices.Contains(urls, u) { // old and next masters may overlap
			urls = append(urls, u)
		}
	}
	if slices.ContainsFunc(urls, func(u string) bool { return transport.URL(u).Buckets() > 0 }) {
		return pool.OpenBuckets(urls, opts...)
	}
	p, err := pool.Open(urls, opts...)
	return []*pool.Pool{p}, err
}

func (c *deploymentConfig) tls() (*tls.Config, error) {
	t := &tls.Config{}
	if c.CA != "" {
		text, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, err
		}
		if t.RootCAs = x509.NewCertPool(); !t.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate in PEM", c.CA)
		}
	}
	if (c.Cert == "") != (c.Key == "") {
		return nil, errors.New("a certificate needs its key, and a key its certificate: give --cert and --key")
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, err
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

// options returns the options of a Locker of the deployment.
func (c *deploymentConfig) options(more ...redlock.Option) []redlock.Option {
	list := []redlock.Option{redlock.WithPrefix(c.Prefix)}
	if c.guard == 0 {
		list = append(list, redlock.WithoutRestartGuard())
	} else {
		list = append(list, redlock.WithMaxTTL(c.guard), redlock.WithTTL(min(c.guard, private.DefaultTTL)))
	}
	if c.shard != [2]int{} {
		list = append(list, private.Option[redlock.Option](private.Settings{Shard: c.shard[0], Shards: c.shard[1]}))
	}
	switch {
	case len(c.Durable) == 0:
	case slices.Equal(c.Durable, []string{"all"}):
		list = append(list, redlock.WithDurableMasters())
	default:
		list = append(list, redlock.WithDurableMasters(c.Durable...))
	}
	return append(list, more...)
}

// observer makes a Locker that writes no admission records.
var observer = private.Option[redlock.Option](private.Settings{Observer: true})

// open makes the pools and the Lockers of the deployment. shut ends them, and waits for that until ctx ends.
func (a *app) open(
	c *deploymentConfig, opts ...redlock.Option,
) (l *redlock.Locker, shut func(context.Context), err error) {
	l, _, shut, err = a.openPools(c, opts...)
	return l, shut, err
}

// observe has f ask the deployment with a Locker that writes nothing of itself. args are the URLs of the masters. f
// returns the exit status.
func (a *app) observe(
	cmd *cobra.Command, args []string, f func(ctx context.Context, l *redlock.Locker, c *deploymentConfig) int,
) error {
	return a.operate(cmd, args, func(ctx context.Context, l *redlock.Locker, c *deploymentConfig, _ []*pool.Pool) int {
		return f(ctx, l, c)
	})
}

// operate is like observe, for f that also needs the pools.
func (a *app) operate(
	cmd *cobra.Command, args []string,
	f func(ctx context.Context, l *redlock.Locker, c *deploymentConfig, pools []*pool.Pool) int,
) error {
	c, err := a.deployment.readDeployment(cmd, args)
	if err != nil {
		return wrongCall(cmd, err)
	}
	return a.observeDeployment(cmd, c, f)
}

func (a *app) observeDeployment(
	cmd *cobra.Command, c *deploymentConfig,
	f func(ctx context.Context, l *redlock.Locker, c *deploymentConfig, pools []*pool.Pool) int,
) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), a.deployment.timeout)
	defer cancel()
	l, pools, shut, err := a.openPools(c, observer)
	if err != nil {
		return wrongCall(cmd, err)
	}
	defer shut(ctx)
	return leave(f(ctx, l, c, pools))
}
