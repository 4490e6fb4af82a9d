package structured

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// tested returns the result of a test as the report holds it.
func tested(t *output.Tested) Object {
	out := Object{{"test", t.Test}, {"origin", t.Origin}, {"rule", t.Rule}}
	if t.Object != (engine.ObjectKey{}) {
		out = out.Add("object", t.Object)
	}
	out = out.Add("verdict", t.Verdict).Add("wanted", t.Wanted).With("got", t.Got).With("message",
		t.Text).With("reason", t.Reason).With("note", t.Note)
	lines, places := t.Fields()
	var fields []any
	for i := range lines {
		fields = append(fields, Object{{"origin", places[i]}, {"message", lines[i]}})
	}
	return out.addIf(fields != nil, "differences", fields)
}

// testCounts returns the counts of tests as the report holds them.
func testCounts(t *output.Tests) Object {
	return Object{
		{"tests", t.Tests},
		{"passed", t.Results[output.TestPassed]},
		{"failed", t.Results[output.TestFailed]},
		{"notRun", t.Results[output.NotRun]},
		{"notTested", t.Results[output.NotTested]},
		{"problems", t.Problems},
	}
}
