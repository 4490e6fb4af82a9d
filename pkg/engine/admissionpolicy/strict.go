package admissionpolicy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// decodeError is the result of a JSON patch that an API server cannot decode. It
// refuses the object then, whatever the failurePolicy (dispatch in
// pkg/admission/plugin/policy/mutating of k8s.io/apiserver).
type decodeError struct{ Unknown []string }

// Error is the server's text.
func (e *decodeError) Error() string {
	parts := make([]string, len(e.Unknown))
	for i, path := range e.Unknown {
		parts[i] = fmt.Sprintf("unknown field %q", path)
	}
	return "strict decoding error: " + strings.Join(parts, ", ")
}

// decodable checks the result of a JSON patch as an API server does, which decodes built-in
// kinds strictly: a field that the kind does not have is an error. Fields that were there
// before the patch do not count. A kind without a schema is not checked.
func (r *run) decodable(ctx context.Context, before, after map[string]any) error {
	kind := r.target.Object.GroupVersionKind()
	if !diff.BuiltIn(kind.Group) {
		return nil
	}
	s, err := cel.SchemaOf(ctx, r.world, kind)
	if err != nil || s.Fields == nil {
		return nil // a rule that needs no schema goes on without
	}
	added := unknownFields(s.Fields, after)
	if len(added) > 0 {
		known := unknownFields(s.Fields, before)
		added = slices.DeleteFunc(added, func(path string) bool { return slices.Contains(known, path) })
	}
	if len(added) == 0 {
		return nil
	}
	return &decodeError{Unknown: added}
}

// unknownFields returns the paths of fields that a schema does not have.
func unknownFields(v engine.FieldValidator, object map[string]any) []string {
	var out []string
	for _, f := range v.Validate(nil, object) {
		if f.Unknown {
			out = append(out, engine.PathString(f.Path))
		}
	}
	return out
}
