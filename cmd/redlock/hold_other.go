//go:build !unix

package main

import "errors"

var errNoBackground = errors.New("redlock lock: not available on this system; use redlock run")

func startHolder(*console) error { return &exit{exitCannotRun, errNoBackground} }

func hold(*console, *lockFlags, []string, func() (*client, error)) error {
	return &exit{exitCannotRun, errNoBackground}
}
