package expr_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// TestGiven leaves out what is known, and nothing else: a variable of a macro hides another one of its name.
func TestGiven(t *testing.T) {
	t.Parallel()
	list, other := expr.Path("object.spec.containers"), expr.Path("object.spec.volumes")
	has := func(path string) expr.Expr { return expr.Call("has", expr.Path(path)) }
	each := func(list expr.Expr, body expr.Expr) expr.Expr { return expr.Macro(list, "exists", "c", body) }
	known := []expr.Expr{has("object.spec"), expr.Macro(list, "all", "c", has("c.image")), expr.HasValue(expr.Path("object.?a.b"))}
	for _, row := range []struct {
		of   expr.Expr
		want string
	}{
		{expr.And(has("object.spec"), has("object.status")), `has(object.status)`},
		{expr.Cond(expr.Not(has("object.spec")), expr.String("a"), expr.String("b")), `"b"`},
		{expr.HasValue(expr.Path("object.?a")), `true`},
		{each(list, expr.And(has("c.image"), has("c.args"))), `object.spec.containers.exists(c, has(c.args))`},
		{each(other, expr.And(has("c.image"), has("c.args"))), `object.spec.volumes.exists(c, has(c.image) && has(c.args))`},
		{each(list, each(other, expr.And(has("c.image"), has("c.args")))), `object.spec.containers.exists(c, object.spec.volumes.exists(c, has(c.image) && has(c.args)))`},
	} {
		if got := expr.Given(row.of, known).String(); got != row.want {
			t.Errorf("%s: %s, want %s", row.of, got, row.want)
		}
	}
}

// TestAndNotEmpty asks once whether a string is there and has a value; not where another value would do as well.
func TestAndNotEmpty(t *testing.T) {
	t.Parallel()
	team := expr.OrValue(expr.Path("object.metadata.?labels.team"), expr.String(""))
	given, labels := expr.NotEqual(team, expr.String("")), expr.Path("object.metadata.labels.team")
	for _, row := range []struct {
		of   expr.Expr
		want string
	}{
		{expr.And(given, expr.Equal(labels, expr.String("a"))), `object.metadata.?labels.team.orValue("") == "a"`},
		{expr.And(given, expr.Equal(labels, expr.String(""))), `object.metadata.?labels.team.orValue("") != "" && object.metadata.labels.team == ""`},
		{expr.And(given, expr.Equal(labels, expr.Path("object.a"))), `object.metadata.?labels.team.orValue("") != "" && object.metadata.labels.team == object.a`},
		{expr.And(given, expr.Equal(expr.Path("object.a"), expr.String("a"))), `object.metadata.?labels.team.orValue("") != "" && object.a == "a"`},
	} {
		if got := row.of.String(); got != row.want {
			t.Errorf("%s, want %s", got, row.want)
		}
	}
}
