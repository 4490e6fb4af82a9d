package gatekeeper_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/location"
)

var key = engine.ObjectKey{Namespace: "shop", Name: "web"}

// missing stands for a location that the object does not have.
type missing struct{}

func TestWhatIsWritten(t *testing.T) {
	text := gatekeeper.Source{Value: "a"}
	list := []any{"a", int64(1)}
	for name, c := range map[string]struct {
		action gatekeeper.Action
		on     any
		want   location.Result
	}{
		"Assign adds":                            {&gatekeeper.Assign{Source: text}, missing{}, location.Result{Write: true, Value: "a"}},
		"Assign replaces":                        {&gatekeeper.Assign{Source: text}, int64(7), location.Result{Write: true, Value: "a"}},
		"the object's name":                      {&gatekeeper.Assign{Source: gatekeeper.Source{Metadata: "name"}}, missing{}, location.Result{Write: true, Value: "web"}},
		"the object's namespace":                 {&gatekeeper.Assign{Source: gatekeeper.Source{Metadata: "namespace"}}, missing{}, location.Result{Write: true, Value: "shop"}},
		"AssignMetadata adds":                    {&gatekeeper.AssignMetadata{Source: text}, missing{}, location.Result{Write: true, Value: "a"}},
		"AssignMetadata finds its own":           {&gatekeeper.AssignMetadata{Source: text}, "a", location.Result{}},
		"ModifySet adds what is missing":         {&gatekeeper.ModifySet{Values: list}, []any{"a"}, location.Result{Write: true, Value: list}},
		"ModifySet finds all there":              {&gatekeeper.ModifySet{Values: list}, []any{"b", int64(1), "a"}, location.Result{Value: []any{"b", int64(1), "a"}}},
		"ModifySet makes the list":               {&gatekeeper.ModifySet{Values: list}, missing{}, location.Result{Write: true, Value: list}},
		"ModifySet prunes":                       {&gatekeeper.ModifySet{Values: list, Prune: true}, []any{"b", int64(1)}, location.Result{Write: true, Value: []any{"b"}}},
		"ModifySet has nothing to prune":         {&gatekeeper.ModifySet{Values: list, Prune: true}, []any{"b"}, location.Result{Value: []any{"b"}}},
		"ModifySet prunes a list that is none":   {&gatekeeper.ModifySet{Values: list, Prune: true}, missing{}, location.Result{Value: list, Create: true}},
		"AssignImage exchanges parts":            {&gatekeeper.AssignImage{Parts: gatekeeper.ImageReference{Domain: "r.example"}}, "app:1", location.Result{Write: true, Value: "r.example/app:1"}},
		"AssignImage takes its path for a whole": {&gatekeeper.AssignImage{Parts: gatekeeper.ImageReference{Path: "app"}}, missing{}, location.Result{Write: true, Value: "app"}},
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
	kept, err := (&gatekeeper.AssignMetadata{Source: gatekeeper.Source{Value: "a"}}).Setter(key).Set("b", true)
	var there *gatekeeper.KeptError
	if err != nil || kept.Write || !errors.As(kept.Skip, &there) || there.Value != "b" {
		t.Errorf("a label that is there: %+v, %v", kept, err)
	}
	source := gatekeeper.Source{External: &gatekeeper.External{Provider: "p", DataSource: "ValueAtLocation"}}
	for _, a := range []gatekeeper.Action{&gatekeeper.Assign{Source: source}, &gatekeeper.AssignMetadata{Source: source}} {
		asked, err := a.Setter(key).Set(nil, false)
		var external *gatekeeper.ExternalDataError
		if err != nil || asked.Write || !errors.As(asked.Skip, &external) || external.Provider != "p" {
			t.Errorf("external data: %+v, %v", asked, err)
		}
	}
}

func TestWhatCannotBeWrittenTo(t *testing.T) {
	for name, a := range map[string]gatekeeper.Action{
		"a set": &gatekeeper.ModifySet{Values: []any{"a"}}, "an image": &gatekeeper.AssignImage{Parts: gatekeeper.ImageReference{Tag: ":1"}},
	} {
		if got, err := a.Setter(key).Set(int64(1), true); err == nil {
			t.Errorf("a number is taken for %s: %+v", name, got)
		}
	}
}
