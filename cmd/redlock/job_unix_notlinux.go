//go:build unix && !linux

package main

import "syscall"

// dieWithThread does nothing: only Linux has such a signal.
func dieWithThread(*syscall.SysProcAttr) {}
