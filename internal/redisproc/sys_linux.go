package redisproc

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the server when this program ends in any way. The server gets its own process
// group, so that an interrupt from the terminal does not reach the server, and the program can use the server until
// the program exits.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
