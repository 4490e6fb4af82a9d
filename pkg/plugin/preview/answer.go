package preview

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// answered returns the impacts of a change after its dry run: what the server says takes the place of what
// it was expected to say.
func answered(impacts []engine.Impact, w output.Written) []engine.Impact {
	said := answers(w)
	if w.Unverified != nil || len(said) > 0 && said[0].Code == engine.ImpactUntried {
		return slices.Concat(impacts, said)
	}
	var out []engine.Impact
	for _, i := range impacts {
		switch i.Code {
		case engine.ImpactInvalid, engine.ImpactImmutable:
			if w.Outcome == apply.Failed {
				said[0].Fields, said[0].Advice = append(said[0].Fields, i.Fields...), cmp.Or(said[0].Advice, i.Advice)
			}
		case engine.ImpactRollout:
			if w.Outcome != apply.Failed {
				out = append(out, i)
			}
		case engine.ImpactOwned:
			if w.Outcome != apply.Conflicted {
				out = append(out, i)
			}
		default:
			out = append(out, i)
		}
	}
	return append(out, said...)
}

// answers returns what came of a dry run.
func answers(w output.Written) []engine.Impact {
	say := func(code engine.ImpactCode, text, advice string) engine.Impact {
		i := engine.Impact{Code: code, Text: text, Advice: advice}
		if alike := wording.WithoutName(text, w.Key); alike != text {
			i.Brief = alike
		}
		return i
	}
	switch w.Outcome {
	case apply.Deleted, apply.Replaced, apply.Terminating:
		return []engine.Impact{say(engine.ImpactUntried, "the object is "+w.Verb()+" by apply-existing", "")}
	case apply.Conflicted:
		return []engine.Impact{say(engine.ImpactOwned, w.Explanation(), "")}
	case apply.Drifted:
		return []engine.Impact{say(engine.ImpactUntried, "no dry run: "+w.Explanation(), "preview it again")}
	case apply.Unchanged, apply.ServerKeepsValue:
		return []engine.Impact{say(engine.ImpactAltered, "the server would leave the object as it is", "")}
	case apply.Failed:
		if why := untried(w); why != nil {
			return []engine.Impact{say(engine.ImpactUntried, "no dry run: "+why.Error(), "")}
		}
		return []engine.Impact{say(engine.ImpactRefused, refusal(w), "")}
	}
	var out []engine.Impact
	if w.Unverified != nil {
		out = append(out, say(engine.ImpactUntried, "no dry run: "+untried(w).Error(), ""))
	}
	if lost := w.Difference.Of(request.Lost); len(lost) > 0 {
		out = append(out, say(engine.ImpactAltered, "the server would drop "+strings.Join(lost.Paths(), ", ")+", which the change means to keep", "apply-existing asks before it writes this object"))
	}
	for _, text := range w.Differences() {
		out = append(out, say(engine.ImpactAltered, text, ""))
	}
	return out
}

// refusal is what the server says of a change that it refuses.
func refusal(w output.Written) string {
	var rejected *apply.RejectedError
	if errors.As(w.Err, &rejected) {
		return "the server refuses it: " + rejected.Text
	}
	return w.Explanation()
}

// untried returns why the server has not answered; nil if it has, or need not.
func untried(w output.Written) error {
	var busy *apply.BusyError
	switch {
	case w.Unverified != nil:
		return w.UnverifiedCause()
	case w.Outcome == apply.Drifted, errors.As(w.Err, &busy):
		return w.Cause()
	}
	return nil
}
