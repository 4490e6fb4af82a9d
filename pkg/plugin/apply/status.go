package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
)

// statusSplit makes two Wants of one, for the two endpoints of an object.
type statusSplit struct {
	want      Want
	hasStatus func(context.Context, schema.GroupVersionKind) (bool, error)
	found     bool // the change reaches below .status, which has an endpoint
}

func (w *Writer) split(want Want) *statusSplit {
	return &statusSplit{want: want, hasStatus: w.HasStatus}
}

// object wants everything but the change of the status.
func (s *statusSplit) object(ctx context.Context, live *unstructured.Unstructured, _ string) (*unstructured.Unstructured, error) {
	after, err := s.want(ctx, live, "")
	if err != nil {
		return nil, err
	}
	s.found = false
	object, status := request.SplitStatus(live, after)
	if status == nil || s.hasStatus == nil {
		return after, nil
	}
	if s.found, err = s.hasStatus(ctx, live.GroupVersionKind()); err != nil || !s.found {
		return after, err
	}
	return object, nil
}

// status wants the change of the status and nothing else.
func (s *statusSplit) status(ctx context.Context, live *unstructured.Unstructured, _ string) (*unstructured.Unstructured, error) {
	after, err := s.want(ctx, live, request.StatusSubresource)
	if err != nil {
		return nil, err
	}
	if _, status := request.SplitStatus(live, after); status != nil {
		return status, nil
	}
	return live, nil
}
