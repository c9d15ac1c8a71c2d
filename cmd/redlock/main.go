package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit statuses of all commands except run, lock and unlock, which have their own.
const (
	exitDone     = 0
	exitDanger   = 1
	exitNoQuorum = 2
	exitUsage    = 3
	exitNoOutput = 4
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == superviseCommand {
		supervise(os.Args[2:])
	}
	if len(os.Args) > 4 && os.Args[1] == execCommand {
		become(os.Args[2:])
	}
	catchBrokenPipes()
	if len(os.Args) > 1 && os.Args[1] == holdCommand {
		os.Exit(execute(&app{holder: true, console: console{stdout: os.Stdout, stderr: os.Stderr}}, os.Args[2:]))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes the command line args, writes to stdout and stderr, and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	return execute(&app{console: console{stdout: &output{to: stdout}, stderr: stderr}}, args)
}

// execute executes the command line args with the outputs of a, and returns the exit status.
func execute(a *app, args []string) int {
	defer a.flush()
	root := rootCommand(a)
	root.SetArgs(longFlags(root, args))
	cmd, err := root.ExecuteC()
	code := exitDone
	switch e := (*exit)(nil); {
	case err == nil:
	case errors.As(err, &e):
		if e.err != nil {
			a.complain(e.err)
		}
		code = e.code
	default:
		a.complain(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())) // cobra rejected an argument or a flag
		code = usageStatus(cmd)
	}
	if o, ok := a.stdout.(*output); ok && o.err != nil {
		a.complain(fmt.Errorf("%s: the output is incomplete: %w", cmd.CommandPath(), o.err))
		if code = exitNoOutput; ofLocks(cmd) {
			code = exitRunNoOutput
		}
	}
	return code
}

// An output is the standard output. It keeps the error of the first write that has failed.
type output struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// An app holds the outputs and the flags that all commands use.
type app struct {
	console
	deployment deploymentFlags
	holder     bool // this process holds a lock in the background: see lock.go
}

// An exit is the error of a command that ends with the status code. err is the error to print, or nil if it was already
// printed.
type exit struct {
	code int
	err  error
}

// Error implements error.
func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the error to print.
func (e *exit) Unwrap() error { return e.err }

// leave returns an exit without an error to print, or nil if code is 0.
func leave(code int) error {
	if code == exitDone {
		return nil
	}
	return &exit{code: code}
}

// wrongCall returns a usage error. It must be called before anything was sent to the masters.
func wrongCall(cmd *cobra.Command, err error) error { return &exit{usageStatus(cmd), err} }

func usageStatus(cmd *cobra.Command) int {
	if ofLocks(cmd) {
		return exitRunUsage
	}
	return exitUsage
}

// ofLocks reports whether cmd is one of the commands that have their own exit statuses.
func ofLocks(cmd *cobra.Command) bool {
	return slices.Contains([]string{"run", "lock", "unlock"}, cmd.Name())
}

const rootLong = `Inspects and administers the masters of a deployment of locks, and runs commands under a lock.

Every command needs the URLs of all masters of the deployment: redis://[[user]:password@]host[:port], or rediss://
for TLS. They come from the arguments (of commands with [URL...] in their usage), from --masters, from the file of
--config, or from the environment variable REDLOCK_MASTERS, separated by spaces (in quotes: --masters "$M"). The first
of these that is present is used. A password in an argument is visible to other users in the process list; a password
in the file or in the environment is not.

The URL of a master behind Sentinel is redis+sentinel://s1,s2,s3/mymaster, and that of a cluster
redis+cluster://n1,n2?buckets=64. Their failovers have costs and risks: see docs/guide.md.

If names are sharded, a slash separates the masters of two shards: URL URL URL / URL URL URL.

The file of --config is JSON. It may be the configuration file of the clients (see "redlock set"), with more fields.
While "run", "lock" and "web" are running, they apply changes of the masters in the file:
  {"masters": ["redis://a", "redis://b", "redis://c"], "prefix": "redlock",
   "user": "lock", "password": "...", "ca": "ca.pem", "cert": "client.pem", "key": "client.key",
   "maxTTL": "30s", "durable": ["all"]}
For a password that expires, replace "password" with a file that is read, or a command that is run, for each
connection:
  "passwordFile": "/run/secrets/redis-lock"
  "passwordCommand": ["vault", "kv", "get", "-field=password", "secret/redis-lock"]
The files of "ca", "cert" and "key" are also read for each connection, to masters and to sentinels. Sentinels have
credentials of their own: "sentinelUser", and "sentinelPassword" or "sentinelPasswordFile".
If names are sharded, replace "masters" with "shards":
  "shards": [{"masters": ["redis://a", ...]}, {"masters": ["redis://d", ...]}]
or add "shard": "2/3" to the "masters" of that shard. Paths in the file are relative to its directory.
Flags override the file.

Flags may be written with one dash or two.

Exit status (of all commands except run, lock and unlock, see "redlock run --help"):
  0  success; no problem found
  1  check has found something that endangers locks; or the operation failed, perhaps only on some
     masters
  2  fewer masters vote than a quorum, in the deployment or in a shard: no lock can be acquired
     there
  3  usage error; nothing was sent
  4  the output could not be written completely`

// rootCommand returns the tree of commands.
func rootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "redlock",
		Short:         "locks over independent Redis or Valkey masters, from the command line",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionText(),
		Args:          cobra.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if d, err := cmd.Flags().GetDuration("timeout"); err == nil && d <= 0 {
				return wrongCall(cmd, fmt.Errorf("--timeout %v: must be greater than 0", d))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(a.stderr)
			return errors.Join(cmd.Help(), &exit{code: exitUsage})
		},
		Example: `  export REDLOCK_MASTERS="redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3"
  redlock check`,
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	a.deployment.add(root.PersistentFlags())
	root.PersistentFlags().BoolVar(&a.json, "json", false, "write JSON instead of text")
	for _, command := range []func(*app) *cobra.Command{
		checkCommand, statusCommand, admitCommand, quarantineCommand, maxTTLCommand, setCommand, runCommand, lockCommand,
		unlockCommand, whoCommand, lsCommand, releaseCommand, webCommand, versionCommand, manCommand,
	} {
		root.AddCommand(command(a))
	}
	completeFiles(root)
	root.SetVersionTemplate("{{.Version}}")
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	refuseUnknownTopics(root)
	addExamples(root)
	wrapped := fmt.Sprintf(".FlagUsagesWrapped %d ", columns)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", wrapped))
	fillTexts(root)
	return root
}

// refuseUnknownTopics makes "redlock help" with an unknown command, and "redlock completion" without a shell, usage
// errors.
func refuseUnknownTopics(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.RunE = func(cmd *cobra.Command, _ []string) error {
				return wrongCall(cmd, errors.New("redlock completion: name the shell: bash, zsh, fish or powershell"))
			}
		case "help":
			help := c.Run
			c.Run = nil
			c.RunE = func(cmd *cobra.Command, args []string) error {
				if found, _, err := root.Find(args); err != nil || found == root && len(args) > 0 {
					return wrongCall(cmd, fmt.Errorf("redlock help: unknown command %q; see redlock --help", args[0]))
				}
				help(cmd, args)
				return nil
			}
		}
	}
}

// columns is the maximum length of the lines of the help texts.
const columns = 100

// fillTexts fills the paragraphs of the help texts of c and its commands. Indented lines are not changed.
func fillTexts(c *cobra.Command) {
	var text, paragraph []string
	flush := func() {
		line := ""
		for _, word := range strings.Fields(strings.Join(paragraph, " ")) {
			if len(line)+1+len(word) > columns {
				text, line = append(text, line), ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		if line != "" {
			text = append(text, line)
		}
		paragraph = nil
	}
	for line := range strings.Lines(c.Long) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			flush()
			text = append(text, line)
		} else {
			paragraph = append(paragraph, line)
		}
	}
	flush()
	c.Long = strings.Join(text, "\n")
	for _, sub := range c.Commands() {
		fillTexts(sub)
	}
}

// completeFiles registers the file extensions that shells complete after flags. By default, other flags and arguments
// complete no file names.
func completeFiles(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	for name, extensions := range map[string][]string{
		"config": {"json"}, "ca": {"pem"}, "cert": {"pem"}, "key": {"pem"}, "sentinel-password-file": nil,
	} {
		if err := root.MarkPersistentFlagFilename(name, extensions...); err != nil {
			panic(err) // the flag does not exist
		}
	}
}

// addExamples adds examples to the commands that cobra generates.
func addExamples(root *cobra.Command) {
	for path, example := range map[string]string{
		"help":                  "redlock help run",
		"completion":            "redlock completion bash --help",
		"completion bash":       "source <(redlock completion bash)",
		"completion zsh":        "source <(redlock completion zsh)",
		"completion fish":       "redlock completion fish | source",
		"completion powershell": "redlock completion powershell | Out-String | Invoke-Expression",
	} {
		if c, _, err := root.Find(strings.Fields(path)); err == nil {
			c.Example = "  " + example
		}
	}
}

// longFlags returns args with a second dash before long flags that have only one, such as -prefix. Arguments after "--"
// are not changed.
func longFlags(root *cobra.Command, args []string) []string {
	if len(args) > 0 && strings.HasPrefix(args[0], "__complete") {
		return args
	}
	long := map[string]bool{"help": true, "version": true}
	note := func(f *pflag.Flag) { long[f.Name] = true }
	root.PersistentFlags().VisitAll(note)
	for _, c := range root.Commands() {
		c.Flags().VisitAll(note)
	}
	list := make([]string, 0, len(args))
	for i, arg := range args {
		if arg == "--" {
			return append(list, args[i:]...)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && len(name) > 1 && long[name] {
			arg = "-" + arg
		}
		list = append(list, arg)
	}
	return list
}
