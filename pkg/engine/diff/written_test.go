package diff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// What a policy writes beside what a server drops, such as the stringData of a Secret, leaves that as it was
// written; defaults stay away.
func TestAsWritten(t *testing.T) {
	t.Parallel()
	type fields = map[string]any
	written := fields{"stringData": fields{"password": "p"}}
	decoded := fields{"data": fields{"password": "cA=="}, "type": "Opaque"}
	after := fields{"data": fields{"password": "cA=="}, "type": "Opaque", "stringData": fields{"user": "u"}}
	want := fields{"stringData": fields{"password": "p", "user": "u"}}
	if d := cmp.Diff(want, diff.AsWritten(written, decoded, after, diff.Type{})); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
