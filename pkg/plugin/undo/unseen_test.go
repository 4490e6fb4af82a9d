package undo

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
)

// A journal says what was made of a Secret, and is not shown. So somebody who changes it could have values put back that
// nobody sees. One that keeps no values of Secrets has none to put back; with one that does, a warning tells it.
func TestUnseenValuesArePutBackWithAWarning(t *testing.T) {
	const (
		configMap = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "resourceVersion": "7"}, "data": {"level": "info"}}`
		secret    = `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c", "resourceVersion": "7"}, "data": {"level": "info"}}`
		level     = `"before": {"data": {"level": "evil"}}, "after": {"data": {"level": "info"}}, "fields": [{"path": "data.level", "elements": ["f:data", "f:level"], "kind": `
		other     = `"before": {"data": {"other": "evil"}}, "after": {}, "fields": [{"path": "data.other", "elements": ["f:data", "f:other"], "kind": `
	)
	for name, c := range map[string]struct {
		live, write string
		unseen      bool // and not only seen, or left alone
	}{
		"a value":                              {configMap, `{` + level + `"replaced"}]}`, false},
		"one that was made of a Secret":        {configMap, `{` + level + `"replaced", "secret": true}]}`, true},
		"one with a name made of a Secret":     {configMap, `{` + level + `"replaced", "secretFrom": 2}]}`, true},
		"one that is withheld":                 {configMap, `{` + level + `"replaced", "withheld": true}]}`, false},
		"one that is withheld, and was new":    {configMap, `{` + level + `"added", "withheld": true}]}`, true},
		"one in something that is withheld":    {configMap, `{` + level + `"replaced"}, {"path": "data", "elements": ["f:data"], "kind": "replaced", "withheld": true}]}`, true},
		"one that is removed":                  {configMap, `{"after": {"data": {"level": "info"}}, "fields": [{"path": "data.level", "elements": ["f:data", "f:level"], "kind": "added", "withheld": true}]}`, false},
		"one that the run removed":             {configMap, `{` + other + `"removed", "secret": true}]}`, true},
		"one of a Secret":                      {secret, `{` + level + `"replaced"}]}`, true},
		"one of a Secret that the run removed": {secret, `{` + other + `"removed"}]}`, true},
	} {
		for _, keeps := range []bool{false, true} {
			var live unstructured.Unstructured
			var write diff.Partial
			if err := json.Unmarshal([]byte(c.live), &live.Object); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.write), &write); err != nil {
				t.Fatal(err)
			}
			if err := write.Validate(); err != nil {
				t.Fatal(err)
			}
			of := Object{Object: engine.KeyOf(&live), Writes: []Write{{Partial: write, ResourceVersion: "7"}}}
			r := Reversal{Header: journal.Header{ID: "1", Secrets: keeps}, Executor: &apply.Executor{}}
			change := r.restore(t.Context(), &of, &live)
			warned := slices.Contains(change.ToShow().Steps[0].Warnings, unseen)
			refused := errors.Is(change.Steps[0].Err, errUnfounded)
			if warned != (c.unseen && keeps) || refused != (c.unseen && !keeps) || refused && change.Changed() {
				t.Errorf("%s, %t: warned %t, refused %t, changed %t", name, keeps, warned, refused, change.Changed())
			}
			text, err := json.Marshal([]any{change.ToShow().After.Object, change.After.Object})
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), "evil"); n == 1 && !warned {
				t.Errorf("%s, %t: written and not shown: %s", name, keeps, text)
			}
		}
	}
}
