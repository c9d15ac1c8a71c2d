package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand prints redlock.1. The command is hidden, because only developers and packagers need it.
func manCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "man",
		Short:   "write the manual page",
		Long:    `Writes the manual page, which is generated from the help texts.`,
		Example: `  redlock man >redlock.1`,
		Hidden:  true,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			writeMan(a.stdout, cmd.Root())
			return nil
		},
	}
}

// writeMan writes one page with all commands.
func writeMan(to io.Writer, root *cobra.Command) {
	fmt.Fprintf(to, ".TH REDLOCK 1\n.SH NAME\nredlock \\- %s\n.SH SYNOPSIS\n", roff(root.Short))
	commands := visible(root)
	for _, c := range commands {
		fmt.Fprintf(to, ".B redlock\n%s\n.br\n", roff(c.Use))
	}
	fmt.Fprintf(to, ".SH DESCRIPTION\n%s", block(root.Long))
	fmt.Fprintf(to, ".SH FLAGS OF ALL COMMANDS\n")
	writeFlags(to, root.PersistentFlags())
	fmt.Fprintf(to, ".SH EXAMPLE\n%s", block(root.Example))
	for _, c := range commands {
		fmt.Fprintf(to, ".SH %s\n", strings.ToUpper(c.Name()))
		fmt.Fprintf(to, ".B redlock\n%s\n.PP\n%s", roff(c.Use), block(c.Long))
		writeFlags(to, c.LocalNonPersistentFlags())
		fmt.Fprintf(to, ".PP\nExample:\n%s", block(c.Example))
	}
}

func visible(root *cobra.Command) (list []*cobra.Command) {
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			list = append(list, c)
		}
	}
	return list
}

func writeFlags(to io.Writer, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		if zero := f.DefValue; zero != "" && zero != "false" && zero != "0s" && zero != "[]" {
			usage += " (default " + zero + ")"
		}
		fmt.Fprintf(to, ".TP\n\\fB%s\\fR %s\n%s\n", roff("--"+f.Name), roff(value), roff(usage))
	})
}

// block formats text verbatim, line by line.
func block(text string) string {
	var b strings.Builder
	b.WriteString(".nf\n")
	for line := range strings.Lines(strings.Trim(text, "\n") + "\n") {
		b.WriteString(roff(strings.TrimSuffix(line, "\n")) + "\n")
	}
	b.WriteString(".fi\n")
	return b.String()
}

// roff escapes the special characters of roff.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
