package apply

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// A question is one line, whatever the names in it are: what is agreed to is what is asked.
func TestQuestionsWithHostileNames(t *testing.T) {
	for _, text := range hostile.Texts() {
		key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: text.Text}, Namespace: text.Text, Name: text.Text}
		for asked, ask := range map[string]func(*Prompt) error{
			"run": func(p *Prompt) error {
				return p.Confirm(p.question([]*Task{{Key: key, verified: &Verified{}}}, 1))
			},
			"many": func(p *Prompt) error { return p.ConfirmMany(2, 1) },
			"loss": func(p *Prompt) error { _, err := p.confirmLoss(t.Context(), Result{Key: key}); return err },
		} {
			var out strings.Builder
			p := NewPrompt(strings.NewReader("\n"), redact.NewWriter(&out), cluster.Info{Context: text.Text, Server: text.Text, User: text.Text})
			p.terminal = true
			if err := ask(p); err != nil && !errors.Is(err, errDeclined) {
				t.Fatal(err)
			}
			if err := errors.Join(hostile.Terminal(out.String()), hostile.Lines(out.String(), 1), hostile.Runner(out.String())); err != nil {
				t.Errorf("%s, %s %.80q: %v", asked, text.Class, text.Text, err)
			}
		}
	}
}
