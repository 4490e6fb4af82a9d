package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// answer is what policies make of one object.
type answer struct {
	outcome string
	object  *unstructured.Unstructured // as it would be; of the first two outcomes
	message string                     // of all others
}

// The outcomes.
const (
	isChanged   = "changed"
	isUnchanged = "unchanged"
	isDenied    = "denied"  // by a policy
	isRefused   = "refused" // by the server, for another reason
)

// verdictOn returns what the server made of an object.
func verdictOn(before, after *unstructured.Unstructured) answer {
	if cmp.Equal(comparableForm(before), comparableForm(after)) {
		return answer{outcome: isUnchanged, object: after}
	}
	return answer{outcome: isChanged, object: after}
}

// comparableForm returns an object without what every request changes or sets.
func comparableForm(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	u = u.DeepCopy()
	for _, name := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(u.Object, "metadata", name)
	}
	return u.Object
}

// difference compares the server's answer with another one; it is empty where
// they are the same.
func (a answer) difference(b answer) string {
	if a.outcome != b.outcome || (a.outcome == isDenied && !strings.Contains(b.message, a.reason())) {
		return fmt.Sprintf("-%s %s\n+%s %s", a.outcome, a.message, b.outcome, b.message)
	}
	theirs, ours := comparableForm(a.object), comparableForm(b.object)
	delete(theirs, "apiVersion") // either may be asked in another version than the other
	delete(ours, "apiVersion")
	return cmp.Diff(theirs, ours)
}

// reason is why a policy denies an object, in the words of kubectl-mutate where
// they are others than the server's.
func (a answer) reason() string {
	for theirs, ours := range map[string]string{
		"no params found for policy binding with `Deny` parameterNotFoundAction": "parameterNotFoundAction is Deny",
		"failed to find resource referenced by paramKind":                        "is not known",
		"actual cost limit exceeded":                                             "it reached the limit of 1000000 units of CEL cost",
		"got &{NULL_VALUE}":                                                      "null is nothing that an Object can hold",
		"got structpb.NullValue":                                                 "null is nothing that an Object can hold",
		"got &value.valueUnstructured{Value:0}":                                  "null is nothing that an Object can hold",
		"got &value.valueUnstructured{Value:[]uint8{":                            "a bytes is nothing that an object can hold",
	} {
		if strings.Contains(a.message, theirs) {
			return ours
		}
	}
	reason := a.message
	for _, who := range []string{"denied request: ", "Internal error occurred: ", "error applying patch: ", "to typed object: ", "resulted in error: ", "fails to evaluate: "} {
		if _, what, ok := strings.Cut(reason, who); ok {
			reason = what
		}
	}
	return reason
}

// text is an answer for people: what would change, or what is wrong.
func (a answer) text(before *unstructured.Unstructured) string {
	if a.outcome != isChanged {
		return strings.TrimSuffix(a.outcome+": "+a.message, ": ")
	}
	var b strings.Builder
	b.WriteString(isChanged)
	for _, f := range diff.Compare(comparableForm(before), comparableForm(a.object), diff.Type{}) {
		path := engine.PathString(f.Path)
		switch f.Kind {
		case engine.Added:
			fmt.Fprintf(&b, "\n  + %s: %s", path, compact(f.To))
		case engine.Removed:
			fmt.Fprintf(&b, "\n  - %s: %s", path, compact(f.From))
		default:
			fmt.Fprintf(&b, "\n  %s %s: %s -> %s", f.Kind, path, compact(f.From), compact(f.To))
		}
	}
	return b.String()
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// describe returns the answers to a case as text, so that they can be recorded: without
// what is only so in this run.
func (c *oracleCase) describe(refusals []string, answers []answer) string {
	var b strings.Builder
	for _, r := range refusals {
		fmt.Fprintf(&b, "%s\n", r)
	}
	for i, object := range c.live {
		fmt.Fprintf(&b, "%s %s: %s\n", object.GetKind(), object.GetName(), answers[i].text(object))
	}
	text := strings.NewReplacer(c.namespace+".", "", c.namespace, placeholder).Replace(b.String())
	return unsettled.ReplaceAllString(text, "...")
}

// unsettled is what no two runs have in common.
var unsettled = regexp.MustCompile(`https://[^/]*|stream ID \d+|0x[0-9a-f]{6,}`)
