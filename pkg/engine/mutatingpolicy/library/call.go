package library

import (
	"context"
	"errors"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// raw makes a request to the API server, once in a run, and decodes the answer.
func (s *Session) raw(ctx context.Context, method, path string, body []byte) (any, error) {
	if s.world.Raw == nil {
		return nil, s.lacks("%s %s: there is no API server to ask", method, path)
	}
	type key struct{ method, path, body string }
	answer, err := s.world.Memo.Ask(ctx, key{method, path, string(body)}, func(ctx context.Context) (any, error) {
		content, err := s.world.Raw.Raw(ctx, method, path, body)
		if err != nil {
			return nil, err
		}
		if len(content) > s.world.Limits.ContextSize {
			return nil, &limit.Error{What: "bytes in one answer", Max: s.world.Limits.ContextSize}
		}
		var out any
		if err := utiljson.Unmarshal(content, &out); err != nil {
			return nil, fmt.Errorf("the answer is not JSON: %w", err)
		}
		return out, nil
	})
	var unanswered *engine.UnansweredError
	if errors.As(err, &unanswered) {
		return nil, s.lacks("%v", err)
	}
	return answer, err
}

// fetch calls a web service.
func (s *Session) fetch(r engine.RemoteRequest) ([]byte, error) {
	if s.world.Remote == nil {
		return nil, s.lacks("http: calls to web services are made only with --allow-http")
	}
	var content []byte
	var err error
	limit.Wait(s.context, func() { content, err = s.world.Remote.Fetch(s.context, r) })
	return content, err
}
