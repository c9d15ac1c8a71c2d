//go:build !unix

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

var errNoBackground = errors.New("redlock lock: not available on this system; use redlock run")

func (a *app) startHolder(*lockFlags) error { return &exit{exitCannotRun, errNoBackground} }

func (a *app) hold(*cobra.Command, *deploymentConfig, *lockFlags, []string) error {
	return &exit{exitCannotRun, errNoBackground}
}
