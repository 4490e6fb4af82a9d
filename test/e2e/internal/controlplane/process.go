package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
)

// process is a child that writes to a log file.
type process struct {
	name, log string
	cmd       *exec.Cmd
	ended     chan struct{} // closed when the child has ended, however it did
}

func startProcess(name, log, program string, args ...string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // the child has its own handle
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &process{name: name, log: log, cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // that it ended at all is what counts; the log says why
	}()
	return p, nil
}

// kill ends the child and waits until it is gone. There is no grace: what it
// holds is thrown away with it.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only for a child that has ended already
	<-p.ended
}

// failure is the error of a child that ended on its own: the end of its log.
func (p *process) failure() error {
	const lines = 10
	content, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("%s ended early, and its log cannot be read: %w", p.name, err)
	}
	all := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return fmt.Errorf("%s ended early:\n%s", p.name, bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
