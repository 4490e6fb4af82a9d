package convert

import (
	"fmt"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// TestInlined covers variables that use each other: each of them would double the expression.
func TestInlined(t *testing.T) {
	r := &rule{variables: []named{{"v0", expr.Path("object.a")}}}
	for i := range 40 {
		before := expr.Variable(fmt.Sprintf("v%d", i))
		r.variables = append(r.variables, named{fmt.Sprintf("v%d", i+1), expr.Sum(before, before)})
	}
	if got := r.inlined(expr.Equal(expr.Variable("v1"), expr.Int(1))); got.String() != "object.a + object.a == 1" {
		t.Errorf("got %s", got)
	}
	if got := r.inlined(expr.Equal(expr.Variable("v40"), expr.Int(1))); len(got.String()) > 2*maxInlined || !mentionsVariables(got) {
		t.Errorf("got %d bytes", len(got.String()))
	}
}
