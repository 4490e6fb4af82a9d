package journal

import (
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// ParseToResume reads a journal as Resume does.
func ParseToResume(in io.Reader) (*Journal, error) {
	p := newParser("")
	p.kept = &plan.Entries{}
	return p.parse(in)
}

// ParseBriefly reads a journal as Glance does.
func ParseBriefly(in io.Reader) (*Journal, error) {
	p := parser{brief: true}
	return p.parse(in)
}
