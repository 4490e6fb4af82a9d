package convert

import (
	"fmt"
	"testing"
)

// Variables that are written out may double with each of them.
func TestInlinedIsBounded(t *testing.T) {
	r := &rule{variables: []named{{"v0", "object.a"}}}
	for i := range 40 {
		r.variables = append(r.variables, named{fmt.Sprint("v", i+1), fmt.Sprintf("variables.v%d + variables.v%d", i, i)})
	}
	if got, want := r.inlined("variables.v1 == 1"), "(object.a + object.a) == 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := r.inlined("variables.v40 == 1"); len(got) > maxInlined || !variable.MatchString(got) {
		t.Errorf("got %d bytes: %.100s", len(got), got)
	}
}
