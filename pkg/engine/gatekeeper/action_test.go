package gatekeeper

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/location"
)

var key = engine.ObjectKey{Namespace: "shop", Name: "web"}

// missing stands for a location that the object does not have.
type missing struct{}

func TestActionWrites(t *testing.T) {
	text := source{Value: "a"}
	list := []any{"a", int64(1)}
	for name, c := range map[string]struct {
		action action
		on     any
		want   location.Result
	}{
		"Assign adds":                            {&assign{source: text}, missing{}, location.Result{Write: true, Value: "a"}},
		"Assign replaces":                        {&assign{source: text}, int64(7), location.Result{Write: true, Value: "a"}},
		"the object's name":                      {&assign{source: source{Metadata: "name"}}, missing{}, location.Result{Write: true, Value: "web"}},
		"the object's namespace":                 {&assign{source: source{Metadata: "namespace"}}, missing{}, location.Result{Write: true, Value: "shop"}},
		"AssignMetadata adds":                    {&assign{source: text, adds: true}, missing{}, location.Result{Write: true, Value: "a"}},
		"AssignMetadata finds its own":           {&assign{source: text, adds: true}, "a", location.Result{}},
		"ModifySet adds what is missing":         {&modifySet{Values: list}, []any{"a"}, location.Result{Write: true, Value: list}},
		"ModifySet finds all there":              {&modifySet{Values: list}, []any{"b", int64(1), "a"}, location.Result{}},
		"ModifySet makes the list":               {&modifySet{Values: list}, missing{}, location.Result{Write: true, Value: list}},
		"ModifySet prunes":                       {&modifySet{Values: list, Prune: true}, []any{"b", int64(1)}, location.Result{Write: true, Value: []any{"b"}}},
		"ModifySet has nothing to prune":         {&modifySet{Values: list, Prune: true}, []any{"b"}, location.Result{Value: []any{"b"}}},
		"ModifySet prunes a list that is none":   {&modifySet{Values: list, Prune: true}, missing{}, location.Result{Value: list, Create: true}},
		"AssignImage exchanges parts":            {&assignImage{Parts: imageReference{Domain: "r.example"}}, "app:1", location.Result{Write: true, Value: "r.example/app:1"}},
		"AssignImage takes its path for a whole": {&assignImage{Parts: imageReference{Path: "app"}}, missing{}, location.Result{Write: true, Value: "app"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, absent := c.on.(missing)
			current := c.on
			if absent {
				current = nil
			}
			got, err := c.action.set(key, current, !absent)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
