//go:build unix

package redisproc

import "syscall"

const (
	termSignal   = syscall.SIGTERM
	pauseSignal  = syscall.SIGSTOP
	resumeSignal = syscall.SIGCONT
)
