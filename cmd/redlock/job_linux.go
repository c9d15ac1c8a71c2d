package main

import "syscall"

// dieWithThread has the kernel kill the command when the thread ends that has started it, so when this process ends.
// It is for the case that the watchman is killed at the same time. It does not reach the command's own children.
func dieWithThread(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
