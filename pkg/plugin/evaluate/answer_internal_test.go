package evaluate

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// answerCase is what the server says of a change, and what is shown of that.
type answerCase struct {
	result  write.Result
	want    []string
	untried string
}

func impactTexts(impacts []engine.Impact) []string {
	var out []string
	for _, i := range impacts {
		text := string(i.Code) + ": " + i.Text
		if i.Brief != "" {
			text += " (alike: " + i.Brief + ")"
		}
		if i.Advice != "" {
			text += "; " + i.Advice
		}
		out = append(out, text)
	}
	return out
}

// answerCases are all about one field of one object.
func answerCases(key engine.ObjectKey, level fieldpath.Path) map[string]answerCase {
	rejected := func(text string) error {
		return &write.ObjectError{Key: key, Err: &write.RejectedError{Text: text, Err: errors.New(text)}}
	}
	return map[string]answerCase{
		"accepted": {result: write.Result{Outcome: write.Planned}, want: []string{"owned: flux owns it", "rollout: 3 Pods", "not-idempotent: appends"}},
		"refused by a webhook": {
			result: write.Result{Outcome: write.Failed, Err: rejected(`admission webhook "w" denied the request: pods "web" is locked`)},
			want: []string{
				"owned: flux owns it", "not-idempotent: appends",
				`refused: the server refuses it: admission webhook "w" denied the request: pods "web" is locked (alike: the server refuses it: admission webhook "w" denied the request: pods "..." is locked); correct the rule`,
			},
		},
		"ignored": {
			result: write.Result{Outcome: write.Failed, Err: &write.ObjectError{Key: key, Err: errors.New("the server ignores data.level; nothing was written")}},
			want:   []string{"owned: flux owns it", "not-idempotent: appends", "refused: the server ignores data.level; nothing was written; correct the rule"},
		},
		"altered": {
			result: write.Result{Outcome: write.Planned, Difference: request.Difference{
				{Path: level, Class: request.Overridden}, {Path: level, Class: request.Lost}, {Path: level, Class: request.Defaulted},
			}},
			want: []string{
				"owned: flux owns it", "rollout: 3 Pods", "not-idempotent: appends",
				"altered: the server would drop data.level, which the change means to keep; apply-existing asks before it writes this object",
				"altered: the server set another value: data.level", "altered: the server also sets data.level",
			},
		},
		"kept": {
			result: write.Result{Outcome: write.ServerKeepsValue},
			want:   []string{"owned: flux owns it", "rollout: 3 Pods", "not-idempotent: appends", "altered: the server would leave the object as it is"},
		},
		"in conflict": {
			result: write.Result{Outcome: write.Conflicted, Err: &write.ObjectError{Key: key, Err: errors.New("conflict with helm")}},
			want:   []string{"rollout: 3 Pods", "not-idempotent: appends", "refused: conflict with helm"},
		},
		"of a webhook that supports no dry run": {
			result: write.Result{Outcome: write.Planned, Unverified: &write.ObjectError{Key: key, Err: errors.New(`admission webhook "w" does not support dry run`)}},
			want: []string{
				"invalid: the server will refuse it; correct the rule", "owned: flux owns it", "rollout: 3 Pods", "not-idempotent: appends",
				`untried: no dry run: admission webhook "w" does not support dry run`,
			},
			untried: `admission webhook "w" does not support dry run`,
		},
		"of an object that others write": {
			result: write.Result{Outcome: write.Failed, Err: &write.ObjectError{Key: key, Err: &write.BusyError{Attempts: 6}}},
			want: []string{
				"invalid: the server will refuse it; correct the rule", "owned: flux owns it", "rollout: 3 Pods", "not-idempotent: appends",
				"untried: no dry run: the object changed during each of 6 attempts; run the command again",
			},
			untried: "the object changed during each of 6 attempts; run the command again",
		},
		"of a deleted object": {
			result: write.Result{Outcome: write.Deleted},
			want: []string{
				"invalid: the server will refuse it; correct the rule", "owned: flux owns it", "rollout: 3 Pods", "not-idempotent: appends",
				"untried: the object is skipped (deleted meanwhile) by apply-existing",
			},
		},
		"of a Secret": {
			result: write.Result{Outcome: write.Failed, Err: rejected("s3cr3t"), Secrets: []engine.FieldChange{{Path: level}}},
			want:   []string{"owned: flux owns it", "not-idempotent: appends", "refused: " + engine.ErrHidden.Error() + "; correct the rule"},
		},
	}
}

// What the server says takes the place of what it was expected to say, and nothing else goes.
func TestAnswered(t *testing.T) {
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Pod"}, Namespace: "shop", Name: "web"}
	level := fieldpath.MakePathOrDie("data", "level")
	forecast := []engine.Impact{
		{Code: engine.ImpactInvalid, Text: "the server will refuse it", Advice: "correct the rule", Fields: []fieldpath.Path{level}},
		{Code: engine.ImpactOwned, Text: "flux owns it"},
		{Code: engine.ImpactRollout, Text: "3 Pods", Pods: 3},
		{Code: engine.ImpactNotIdempotent, Text: "appends"},
	}
	for name, c := range answerCases(key, level) {
		t.Run(name, func(t *testing.T) {
			c.result.Key = key
			w := output.Written{Result: &c.result}.ToShow()
			if diff := cmp.Diff(c.want, impactTexts(answered(forecast, w))); diff != "" {
				t.Error(diff)
			}
			why := ""
			if err := untried(w); err != nil {
				why = err.Error()
			}
			if why != c.untried {
				t.Errorf("untried because of %q, want %q", why, c.untried)
			}
		})
	}
}
