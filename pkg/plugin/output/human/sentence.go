package human

import "github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"

// ResultSentence says what came of an object, and why it is not as wanted: "patched",
// "conflicted: conflict with ...". It is not masked.
func ResultSentence(r *apply.Result) string {
	text := outcomeText(r)
	switch {
	case r.Err != nil:
		return text + ": " + explanation(r)
	case r.Status != nil && r.Status.Err != nil:
		return text + ", but not its status: " + explanation(r.Status)
	}
	return text
}
