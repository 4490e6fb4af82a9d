package contextentry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// request is a call whose variables are resolved.
type request struct {
	*call
	target   string // a path of the API server, or a URL
	body     []byte
	header   map[string][]string
	caBundle string
}

func (c *call) render(s *variables.Scope) (*request, error) {
	r := &request{call: c}
	var err error
	target := c.url
	if c.urlPath != nil {
		target = c.urlPath
	}
	if r.target, err = renderText(target, s); err != nil {
		return nil, err
	}
	if r.caBundle, err = renderText(c.caBundle, s); err != nil {
		return nil, fmt.Errorf("caBundle: %w", err)
	}
	if err := r.renderHeaders(s); err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	if c.method != "POST" {
		return r, nil
	}
	body := map[string]any{}
	err = eachPair(c.data, s, func(key string, value any) error {
		body[key] = value
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	r.body, err = json.Marshal(body)
	return r, err
}

func (r *request) renderHeaders(s *variables.Scope) error {
	return eachPair(r.headers, s, func(key string, value any) error {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("%s must be a string, not %s", key, policydecode.TypeName(value))
		}
		if r.header == nil {
			r.header = map[string][]string{}
		}
		r.header[key] = append(r.header[key], text)
		return nil
	})
}

// eachPair calls a function with each pair of a list of {key, value}.
func eachPair(t *variables.Template, s *variables.Scope, take func(key string, value any) error) error {
	if t == nil {
		return nil
	}
	rendered, err := t.Render(s)
	if err != nil {
		return err
	}
	list, ok := rendered.([]any)
	if !ok {
		return fmt.Errorf("must be a list, not %s", policydecode.TypeName(rendered))
	}
	for _, item := range list {
		pair, _ := item.(map[string]any)
		key, ok := pair["key"].(string)
		if !ok || key == "" {
			return errors.New("an element has no key")
		}
		if err := take(key, pair["value"]); err != nil {
			return err
		}
	}
	return nil
}

// answer is the decoded answer: the one that the user gives, or else that of the
// API server or the service, which is asked once in a run.
func (r *request) answer(from *Sources) (any, error) {
	body, given, err := from.Values.Answer(r.method, r.target)
	if err != nil {
		return nil, fmt.Errorf("failed to %s %s: %w", r.method, r.target, err)
	}
	switch {
	case given:
		return from.answered(body), nil
	case r.urlPath == nil:
		return r.fetch(from)
	default:
		return r.ask(from)
	}
}

// ask makes a request to the API server, if it is one that a policy may make.
func (r *request) ask(from *Sources) (any, error) {
	path, err := engine.ParseAPIPath(r.target)
	if err != nil {
		return nil, r.refused(err.Error())
	}
	if reason := path.Refusal(r.method); reason != "" {
		return nil, r.refused(reason)
	}
	if r.own != "" && path.Namespace != r.own {
		return nil, r.refused(fmt.Sprintf("a Policy in namespace %s can only read below /namespaces/%s/", r.own, r.own))
	}
	answer, err := r.read(from, path.String())
	var unanswered *engine.UnansweredError
	switch {
	case errors.As(err, &unanswered):
		return nil, fmt.Errorf("%w; apiCallResponses in a --values file can give the answer", err)
	case err != nil:
		return nil, fmt.Errorf("failed to %s resource with raw url: %s: %w", r.method, r.target, err)
	}
	return answer, nil
}

func (r *request) read(from *Sources, path string) (any, error) {
	if from.World.Raw == nil {
		return nil, &jmespath.UnsupportedError{Field: r.field, Reason: "there is no API server to read from"}
	}
	type key struct{ method, path, body string }
	return from.ask(key{r.method, path, string(r.body)}, func(ctx context.Context) (any, error) {
		return decodeAnswer(from.World.Raw.Raw(ctx, r.method, path, r.body))
	})
}

// fetch calls a service. Kyverno adds the token of its ServiceAccount; the user's
// own credentials are never sent.
func (r *request) fetch(from *Sources) (any, error) {
	if from.World.Remote == nil {
		return nil, &jmespath.UnsupportedError{Field: r.field + ".service", Reason: "calls to web services are made only with --allow-http"}
	}
	type key struct{ method, url, header, body, caBundle string }
	header, err := json.Marshal(r.header) // has the names in order
	if err != nil {
		return nil, err
	}
	id := key{r.method, r.target, string(header), string(r.body), r.caBundle}
	answer, err := from.ask(id, func(ctx context.Context) (any, error) {
		return decodeAnswer(from.World.Remote.Fetch(ctx, engine.RemoteRequest{
			Method: r.method, URL: r.target, Header: r.header, Body: r.body, CABundle: []byte(r.caBundle),
		}))
	})
	if err != nil {
		return nil, fmt.Errorf("failed to execute HTTP request: %w", err)
	}
	return answer, nil
}

// decodeAnswer decodes JSON with numbers as objects hold them.
func decodeAnswer(content []byte, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	var out any
	if err := utiljson.Unmarshal(content, &out); err != nil {
		return nil, &unreadableAnswer{err}
	}
	return out, nil
}
