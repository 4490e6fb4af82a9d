package input_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
)

func TestReadImpliedType(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a: 1", "v1 Implied"},
		{"{apiVersion: v2, kind: Own}", "v2 Own"},
	} {
		r := &input.Reader{Stdin: strings.NewReader(c.text)}
		documents, err := r.ReadAll(t.Context(), input.Files{Paths: []string{"-"}, APIVersion: "v1", Kind: "Implied"})
		if err != nil || len(documents) != 1 {
			t.Fatalf("%s: %d documents, %v", c.text, len(documents), err)
		}
		if got := documents[0].Object().GetAPIVersion() + " " + documents[0].Object().GetKind(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
	r := &input.Reader{Stdin: strings.NewReader("kind: Half")}
	if _, err := r.ReadAll(t.Context(), input.Files{Paths: []string{"-"}, APIVersion: "v1", Kind: "Implied"}); !errors.Is(err, input.ErrNotObject) {
		t.Errorf("a document that says half: %v", err)
	}
}
