//go:build !linux

package controlplane

import "os/exec"

// dieWithParent has no counterpart here: Ctrl-C reaches the children because
// they stay in this process' group, but one that is killed leaves them behind.
func dieWithParent(*exec.Cmd) {}
