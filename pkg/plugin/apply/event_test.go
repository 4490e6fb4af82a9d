package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
)

// creator keeps what it is given, and fails in some namespaces.
type creator struct {
	created []*unstructured.Unstructured
	failing map[string]error
}

func (c *creator) Create(_ context.Context, u *unstructured.Unstructured) error {
	c.created = append(c.created, u)
	return c.failing[u.GetNamespace()]
}

func recorder(c *creator, warnings *[]string) *apply.EventRecorder {
	return &apply.EventRecorder{
		Creator: c, Now: func() time.Time { return time.Date(2026, 1, 2, 4, 4, 5, 6, time.FixedZone("", 3600)) },
		Warn: func(err error) { *warnings = append(*warnings, err.Error()) },
	}
}

var rule = engine.RuleRef{Dialect: "kyverno", Policy: "add-sec", Rule: "add-sec-rule"}

func eventKey(namespace, name string) engine.ObjectKey {
	gk := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	return engine.ObjectKey{GroupKind: gk, Version: "v1", Namespace: namespace, Name: name, UID: "u", Subresource: "scale"}
}

func TestEventRecorderNamesTheObject(t *testing.T) {
	var c creator
	var warnings []string
	recorder(&c, &warnings).PolicyApplied(t.Context(), eventKey("shop", "foobar"), rule)
	want := map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata": map[string]any{"generateName": "foobar.", "namespace": "shop"},
		"involvedObject": map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "foobar", "uid": "u",
		},
		"type": "Normal", "reason": "PolicyApplied", "message": "policy add-sec/add-sec-rule applied",
		"source": map[string]any{"component": "kubectl-mutate"}, "reportingComponent": "kubectl-mutate",
		"firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z", "count": int64(1),
	}
	if diff := cmp.Diff(want, c.created[0].Object); diff != "" || len(warnings) > 0 {
		t.Errorf("-want +got:\n%s\nwarnings %q", diff, warnings)
	}
}

func TestEventRecorderWarnsOnceForANamespace(t *testing.T) {
	var warnings []string
	c := creator{failing: map[string]error{
		"shop": apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no")),
		"busy": errors.New("connection refused"),
	}}
	r := recorder(&c, &warnings)
	for _, ns := range []string{"shop", "shop", "team", "busy", "busy"} {
		r.PolicyApplied(t.Context(), eventKey(ns, "web"), rule)
	}
	if len(c.created) != 4 {
		t.Errorf("%d attempts, want 4: one in shop and all others", len(c.created))
	}
	if len(warnings) != 3 || !strings.Contains(warnings[0], "apps/Deployment/scale shop/web was changed, but its event could not be recorded: events is forbidden") {
		t.Errorf("warnings %q", warnings)
	}
}
