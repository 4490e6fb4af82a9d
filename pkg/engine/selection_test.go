package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func TestSelectionSet(t *testing.T) {
	labelled := func(value string) engine.Selection {
		return engine.Selection{Kind: "Pod", Labels: &metav1.LabelSelector{MatchLabels: map[string]string{"team": value}}}
	}
	plain, named := engine.Selection{Kind: "Pod"}, engine.Selection{Kind: "Pod", Name: "web"}
	var set engine.SelectionSet
	set.Add(labelled("a"), plain, labelled("b"))
	set.Add(plain, labelled("a"), named, labelled("b"))
	if diff := cmp.Diff([]engine.Selection{labelled("a"), plain, labelled("b"), named}, set.All); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
