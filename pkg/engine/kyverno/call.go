package kyverno

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/apipath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/decode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// RefusedCallError is a request that a policy wants and that is never made.
type RefusedCallError struct {
	Method, Target string
	Reason         string
}

// Error says what was wanted and why it is refused.
func (e *RefusedCallError) Error() string {
	return fmt.Sprintf("%s %s is refused: %s", e.Method, e.Target, e.Reason)
}

// call is a request as a policy writes it.
type call struct {
	field    string // "context[0].apiCall"
	own      string // the namespace of a Policy
	method   string
	written  string              // the path or the URL, as the policy has it
	urlPath  *variables.Template // nil for a call to a service
	url      *variables.Template
	data     *variables.Template // a list of {key, value}; nil when there is none
	headers  *variables.Template // the same
	caBundle *variables.Template
}

// decodeCall reads what apiCall of a rule and of a GlobalContextEntry share.
func decodeCall(f *decode.Fields) *call {
	c := &call{field: fieldInRule(f.Path), own: f.Report.Namespace, method: f.At("method").Text(), data: decodeTemplate(f.At("data"))}
	switch c.method {
	case "":
		c.method = "GET"
	case "GET", "POST":
	default:
		f.At("method").Fail("must be GET or POST, not %q", c.method)
	}
	switch {
	case f.At("urlPath").Text() != "":
		c.written, c.urlPath = f.At("urlPath").Text(), decodeTemplate(f.At("urlPath"))
		if f.Has("service") {
			f.At("service").Lint("has no effect beside urlPath")
		}
	case f.Has("service"):
		c.decodeService(f.At("service").Fields())
	default:
		f.Fail("needs a urlPath or a service")
	}
	if c.data != nil && c.method == "GET" {
		f.At("data").Lint("is only sent with method POST")
	}
	return c
}

func (c *call) decodeService(f *decode.Fields) {
	if f.At("url").Text() == "" {
		f.At("url").Fail("is missing")
	}
	c.written, c.url, c.headers = f.At("url").Text(), decodeTemplate(f.At("url")), decodeTemplate(f.At("headers"))
	c.caBundle = decodeTemplate(f.At("caBundle"))
	f.Done()
}

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
			return fmt.Errorf("%s must be a string, not %s", key, decode.TypeName(value))
		}
		if r.header == nil {
			r.header = map[string][]string{}
		}
		r.header[key] = append(r.header[key], text)
		return nil
	})
}

// eachPair hands over the pairs of a list of {key, value}.
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
		return fmt.Errorf("must be a list, not %s", decode.TypeName(rendered))
	}
	for _, item := range list {
		pair := mapping(item)
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
func (r *request) answer(e *execution) (any, error) {
	body, given, err := e.inputs().values.Answer(r.method, r.target)
	if err != nil {
		return nil, fmt.Errorf("failed to %s %s: %w", r.method, r.target, err)
	}
	switch {
	case given:
		return body, nil
	case r.urlPath == nil:
		return r.fetch(e)
	default:
		return r.ask(e)
	}
}

// ask makes a request to the API server, if it is one that a policy may make.
func (r *request) ask(e *execution) (any, error) {
	path, err := apipath.Parse(r.target)
	if err != nil {
		return nil, &RefusedCallError{Method: r.method, Target: r.target, Reason: err.Error()}
	}
	if reason := path.Refusal(r.method); reason != "" {
		return nil, &RefusedCallError{Method: r.method, Target: r.target, Reason: reason}
	}
	if r.own != "" && path.Namespace != r.own {
		return nil, &RefusedCallError{Method: r.method, Target: r.target, Reason: fmt.Sprintf(
			"a Policy in namespace %s can only read below /namespaces/%s/", r.own, r.own)}
	}
	answer, err := r.read(e, path.String())
	var unanswered *engine.UnansweredError
	switch {
	case errors.As(err, &unanswered):
		return nil, fmt.Errorf("%w; apiCallResponses in a --values file can give the answer", err)
	case err != nil:
		return nil, fmt.Errorf("failed to %s resource with raw url: %s: %w", r.method, r.target, err)
	}
	return answer, nil
}

func (r *request) read(e *execution, path string) (any, error) {
	if e.world.Raw == nil {
		return nil, &UnsupportedError{Field: r.field, Reason: "there is no API server to read from"}
	}
	type key struct{ method, path, body string }
	return e.world.Memo.Do(e.ctx, key{r.method, path, string(r.body)}, func(ctx context.Context) (any, error) {
		return decodeAnswer(e.world.Raw.Raw(ctx, r.method, path, r.body))
	})
}

// fetch calls a service. Kyverno adds the token of its ServiceAccount; the user's
// own credentials go nowhere.
func (r *request) fetch(e *execution) (any, error) {
	if e.world.Remote == nil {
		return nil, &UnsupportedError{Field: r.field + ".service", Reason: "calls to web services are made only with --allow-http"}
	}
	type key struct{ method, url, header, body, caBundle string }
	header, err := json.Marshal(r.header) // has the names in order
	if err != nil {
		return nil, err
	}
	id := key{r.method, r.target, string(header), string(r.body), r.caBundle}
	answer, err := e.world.Memo.Do(e.ctx, id, func(ctx context.Context) (any, error) {
		return decodeAnswer(e.world.Remote.Fetch(ctx, engine.RemoteRequest{
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

// unreadableAnswer is an answer that is there and says nothing.
type unreadableAnswer struct{ err error }

func (e *unreadableAnswer) Error() string { return fmt.Sprintf("the answer is not JSON: %v", e.err) }

func (e *unreadableAnswer) Unwrap() error { return e.err }
