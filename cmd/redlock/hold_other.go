//go:build !unix

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/internal/configfile"
)

var errNoBackground = errors.New("redlock lock: not available on this system; use redlock run")

func (a *app) startHolder(*lockFlags) error { return &exit{exitCannotRun, errNoBackground} }

func (a *app) hold(*cobra.Command, *configfile.Config, *lockFlags, []string) error {
	return &exit{exitCannotRun, errNoBackground}
}
