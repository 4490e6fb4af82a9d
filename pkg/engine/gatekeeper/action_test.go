package gatekeeper

import (
	"errors"
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
		"AssignMetadata adds":                    {&assignMetadata{source: text}, missing{}, location.Result{Write: true, Value: "a"}},
		"AssignMetadata finds its own":           {&assignMetadata{source: text}, "a", location.Result{}},
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

func TestActionSkips(t *testing.T) {
	kept, err := (&assignMetadata{source: source{Value: "a"}}).Setter(key).Set("b", true)
	var there *keptError
	if err != nil || kept.Write || !errors.As(kept.Skip, &there) || there.Value != "b" {
		t.Errorf("a label that is there: %+v, %v", kept, err)
	}
	source := source{External: &external{Provider: "p", DataSource: "ValueAtLocation"}}
	for _, a := range []action{&assign{source: source}, &assignMetadata{source: source}} {
		asked, err := a.Setter(key).Set(nil, false)
		var external *externalDataError
		if err != nil || asked.Write || !errors.As(asked.Skip, &external) || external.Provider != "p" {
			t.Errorf("external data: %+v, %v", asked, err)
		}
	}
}

func TestActionFails(t *testing.T) {
	for name, a := range map[string]action{
		"a set": &modifySet{Values: []any{"a"}}, "an image": &assignImage{Parts: imageReference{Tag: ":1"}},
	} {
		if got, err := a.Setter(key).Set(int64(1), true); err == nil {
			t.Errorf("a number is taken for %s: %+v", name, got)
		}
	}
}
