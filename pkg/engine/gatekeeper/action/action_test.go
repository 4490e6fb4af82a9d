package action_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/action"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/image"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/walk"
)

var key = engine.ObjectKey{Namespace: "shop", Name: "web"}

// missing stands for a location that the object does not have.
type missing struct{}

func TestWhatIsWritten(t *testing.T) {
	text := action.Source{Value: "a"}
	list := []any{"a", int64(1)}
	for name, c := range map[string]struct {
		action action.Action
		on     any
		want   walk.Result
	}{
		"Assign adds":                            {&action.Assign{Source: text}, missing{}, walk.Result{Write: true, Value: "a"}},
		"Assign replaces":                        {&action.Assign{Source: text}, int64(7), walk.Result{Write: true, Value: "a"}},
		"the object's name":                      {&action.Assign{Source: action.Source{Metadata: "name"}}, missing{}, walk.Result{Write: true, Value: "web"}},
		"the object's namespace":                 {&action.Assign{Source: action.Source{Metadata: "namespace"}}, missing{}, walk.Result{Write: true, Value: "shop"}},
		"AssignMetadata adds":                    {&action.AssignMetadata{Source: text}, missing{}, walk.Result{Write: true, Value: "a"}},
		"AssignMetadata finds its own":           {&action.AssignMetadata{Source: text}, "a", walk.Result{}},
		"ModifySet adds what is missing":         {&action.ModifySet{Values: list}, []any{"a"}, walk.Result{Write: true, Value: list}},
		"ModifySet finds all there":              {&action.ModifySet{Values: list}, []any{"b", int64(1), "a"}, walk.Result{Value: []any{"b", int64(1), "a"}}},
		"ModifySet makes the list":               {&action.ModifySet{Values: list}, missing{}, walk.Result{Write: true, Value: list}},
		"ModifySet prunes":                       {&action.ModifySet{Values: list, Prune: true}, []any{"b", int64(1)}, walk.Result{Write: true, Value: []any{"b"}}},
		"ModifySet has nothing to prune":         {&action.ModifySet{Values: list, Prune: true}, []any{"b"}, walk.Result{Value: []any{"b"}}},
		"ModifySet prunes a list that is none":   {&action.ModifySet{Values: list, Prune: true}, missing{}, walk.Result{Value: list, Create: true}},
		"AssignImage exchanges parts":            {&action.AssignImage{Parts: image.Reference{Domain: "r.example"}}, "app:1", walk.Result{Write: true, Value: "r.example/app:1"}},
		"AssignImage takes its path for a whole": {&action.AssignImage{Parts: image.Reference{Path: "app"}}, missing{}, walk.Result{Write: true, Value: "app"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, absent := c.on.(missing)
			current := c.on
			if absent {
				current = nil
			}
			got, err := c.action.Setter(key).Set(current, !absent)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestWhatIsLeftAlone(t *testing.T) {
	kept, err := (&action.AssignMetadata{Source: action.Source{Value: "a"}}).Setter(key).Set("b", true)
	var there *action.KeptError
	if err != nil || kept.Write || !errors.As(kept.Skip, &there) || there.Value != "b" {
		t.Errorf("a label that is there: %+v, %v", kept, err)
	}
	source := action.Source{External: &action.External{Provider: "p", DataSource: "ValueAtLocation"}}
	for _, a := range []action.Action{&action.Assign{Source: source}, &action.AssignMetadata{Source: source}} {
		asked, err := a.Setter(key).Set(nil, false)
		var external *action.ExternalDataError
		if err != nil || asked.Write || !errors.As(asked.Skip, &external) || external.Provider != "p" {
			t.Errorf("external data: %+v, %v", asked, err)
		}
	}
}

func TestWhatCannotBeWrittenTo(t *testing.T) {
	for name, a := range map[string]action.Action{
		"a set": &action.ModifySet{Values: []any{"a"}}, "an image": &action.AssignImage{Parts: image.Reference{Tag: ":1"}},
	} {
		if got, err := a.Setter(key).Set(int64(1), true); err == nil {
			t.Errorf("a number is taken for %s: %+v", name, got)
		}
	}
}
