package controlplane

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel end the child when this process dies, however
// that happens: a test that panics, times out or is killed leaks nothing.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
