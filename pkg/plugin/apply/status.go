package apply

import (
	"context"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// statusSplit divides a change into the part for the object and the part for
// its /status, each of which the server ignores at the other's endpoint.
type statusSplit struct {
	want      Want
	hasStatus func(context.Context, schema.GroupVersionKind) (bool, error)
	found     bool // the change reaches below .status, which has an endpoint
}

// main wants everything but the change of the status.
func (s *statusSplit) main(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	after, err := s.want(ctx, live)
	if err != nil {
		return nil, err
	}
	s.found = false
	if s.hasStatus == nil || apiequality.Semantic.DeepEqual(live.Object["status"], after.Object["status"]) {
		return after, nil
	}
	if s.found, err = s.hasStatus(ctx, live.GroupVersionKind()); err != nil || !s.found {
		return after, err
	}
	return withStatusOf(after, live), nil
}

// status wants the change of the status and nothing else.
func (s *statusSplit) status(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	after, err := s.want(ctx, live)
	if err != nil {
		return nil, err
	}
	return withStatusOf(live, after), nil
}

func withStatusOf(object, from *unstructured.Unstructured) *unstructured.Unstructured {
	fields := maps.Clone(object.Object)
	if status, ok := from.Object["status"]; ok {
		fields["status"] = status
	} else {
		delete(fields, "status")
	}
	return &unstructured.Unstructured{Object: fields}
}
