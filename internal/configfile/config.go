package configfile

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A Config describes a deployment.
type Config struct {
	redlock.Configuration
	Shard           string                  `json:"shard"`  // number of the shard and of all shards, as in "2/3"
	Shards          []redlock.Configuration `json:"shards"` // one for each shard; replaces Masters
	Prefix          string                  `json:"prefix"`
	MaxTTL          string                  `json:"maxTTL"` // the max TTL; empty for the default
	Durable         []string                `json:"durable"`
	User            string                  `json:"user"`
	Password        string                  `json:"password"`
	PasswordFile    string                  `json:"passwordFile"`    // read for each connection
	PasswordCommand []string                `json:"passwordCommand"` // program and arguments, run for each connection
	// The sentinels have credentials of their own.
	SentinelUser         string `json:"sentinelUser"`
	SentinelPassword     string `json:"sentinelPassword"`
	SentinelPasswordFile string `json:"sentinelPasswordFile"` // read for each connection
	// The files of TLS are read for each connection, to a master or to a sentinel.
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`

	// Change makes Open use the epoch and the next masters.
	Change bool `json:"-"`
	// Run runs a password command. If Run is nil, the Run method of the command is used.
	Run func(*exec.Cmd) error `json:"-"`

	shard [2]int // parsed from Shard: number and total
}

// New returns a Config without masters.
func New() *Config { return &Config{Prefix: scripts.DefaultPrefix} }

// Read reads and checks the file at path. Relative paths in the file are relative to the directory of the file.
func Read(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := New()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("%s: invalid configuration of masters: %w", path, explain(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) { // Decoder.More would miss a trailing bracket
		return nil, fmt.Errorf("%s: unexpected text after the configuration of masters", path)
	}
	paths := []*string{&c.CA, &c.Cert, &c.Key, &c.PasswordFile, &c.SentinelPasswordFile}
	if program := c.PasswordCommand; len(program) > 0 && filepath.Base(program[0]) != program[0] {
		paths = append(paths, &program[0]) // a program without a directory is looked up in PATH
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	c.Change = inChange(c.Configuration)
	for _, check := range []func() error{
		c.checkMasters, c.checkMaxTTL, c.checkDurable, c.checkPassword, c.checkShards, c.checkChange,
	} {
		if err := check(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return c, nil
}

// explain returns err, an error of the decoder, in the words of the file rather than those of Go.
func explain(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		kinds := map[reflect.Kind]string{reflect.Slice: "a list in brackets", reflect.String: "a text in quotes"}
		kind, known := kinds[wrong.Type.Kind()]
		if !known {
			kind = wrong.Type.Kind().String()
		}
		return fmt.Errorf("%q is a %s, and must be %s", strings.TrimPrefix(wrong.Field, "Configuration."), wrong.Value, kind)
	case strings.Contains(err.Error(), "unknown field"):
		return fmt.Errorf("%w: \"redlock help\" shows the fields", err)
	}
	return err
}

// checkMasters refuses an empty list, since the command would take the masters from its environment instead.
func (c *Config) checkMasters() error {
	if c.Masters != nil && len(c.Masters) == 0 {
		return errors.New("\"masters\" names no master: give the URLs, or leave it out")
	}
	return nil
}

func (c *Config) checkMaxTTL() error {
	if _, err := time.ParseDuration(c.MaxTTL); c.MaxTTL != "" && err != nil {
		return fmt.Errorf("the max TTL %q: %w", c.MaxTTL, err)
	}
	return nil
}

func (c *Config) checkDurable() error {
	if c.Durable != nil && len(c.Durable) == 0 || slices.Contains(c.Durable, "") {
		return errors.New("\"durable\" names no master: give names as status shows them, or [\"all\"], or leave it out")
	}
	return nil
}

func (c *Config) checkChange() error {
	if !c.Change {
		return nil
	}
	return c.CheckConfiguration()
}

// CheckConfiguration returns an error if the epoch, the masters or the next masters are invalid.
func (c *Config) CheckConfiguration() error {
	own := client.Configuration(c.Configuration)
	return own.Check()
}

func (c *Config) tls() (*tls.Config, error) {
	t := &tls.Config{}
	if c.CA != "" {
		text, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, err
		}
		if t.RootCAs = x509.NewCertPool(); !t.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: contains no certificate in PEM", c.CA)
		}
	}
	if (c.Cert == "") != (c.Key == "") {
		return nil, errors.New("a certificate needs its key, and a key its certificate: give both")
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

// poolOptions returns the options of the pools.
func (c *Config) poolOptions() ([]pool.Option, error) {
	opts := append(c.credentials(), c.sentinelCredentials()...)
	if c.CA == "" && c.Cert == "" && c.Key == "" {
		return opts, nil
	}
	_, err := c.tls() // files that are wrong from the beginning are an error of the configuration
	return append(opts, transport.WithTLSFunc(c.tls)), err
}

// lockerOptions returns the options of a Locker.
func (c *Config) lockerOptions() []redlock.Option {
	opts := []redlock.Option{redlock.WithPrefix(c.Prefix)}
	maxTTL := scripts.DefaultMaxTTL
	if c.MaxTTL != "" {
		maxTTL, _ = time.ParseDuration(c.MaxTTL) // checked by Read
	}
	if maxTTL == 0 {
		opts = append(opts, redlock.WithoutRestartGuard())
	} else {
		opts = append(opts, redlock.WithMaxTTL(maxTTL), redlock.WithTTL(min(maxTTL, client.DefaultTTL)))
	}
	if c.shard != [2]int{} {
		opts = append(opts, client.WithShard(c.shard[0], c.shard[1]))
	}
	switch {
	case len(c.Durable) == 0:
	case slices.Equal(c.Durable, []string{"all"}):
		opts = append(opts, redlock.WithAllMastersDurable())
	default:
		opts = append(opts, redlock.WithDurableMasters(c.Durable[0], c.Durable[1:]...))
	}
	return opts
}

// urls returns the URLs of the masters. During a change, it returns the URLs of the old and the next masters, without
// duplicates.
func (c *Config) urls() (urls []string) {
	for _, u := range slices.Concat(c.Masters, c.Next) {
		if !c.Change || !slices.Contains(urls, u) { // old and next masters may overlap
			urls = append(urls, u)
		}
	}
	return urls
}

// Name replaces the masters of c with the masters at urls. An element "/" separates the masters of two shards.
func (c *Config) Name(urls []string) {
	c.Configuration, c.Shards, c.Change = redlock.Configuration{}, nil, false
	for {
		at := slices.Index(urls, "/")
		if at < 0 {
			break
		}
		c.Shards = append(c.Shards, redlock.Configuration{Masters: urls[:at]})
		urls = urls[at+1:]
	}
	if c.Masters = urls; len(c.Shards) > 0 {
		c.Shards, c.Masters = append(c.Shards, c.Configuration), nil
	}
}
