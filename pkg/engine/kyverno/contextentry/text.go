package contextentry

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// renderText renders a template that must give a string; a missing one is empty.
func renderText(t *variables.Template, s *variables.Scope) (string, error) {
	if t == nil {
		return "", nil
	}
	value, err := t.Render(s)
	if err != nil {
		return "", err
	}
	out, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("must be a string, not %s", policydecode.TypeName(value))
	}
	return out, nil
}

// text is a value that should be a string.
func text(value any) string {
	s, _ := value.(string)
	return s
}
