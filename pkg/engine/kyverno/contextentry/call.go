package contextentry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// call is a request as a policy writes it.
type call struct {
	field    string // "context[0].apiCall"
	own      string // the namespace of a Policy
	method   string
	written  string // the path or the URL, as the policy has it
	target   *variables.Template
	service  bool                // or else the API server
	data     *variables.Template // a list of {key, value}; nil when there is none
	headers  *variables.Template // the same
	caBundle *variables.Template
}

// decodeCall reads what apiCall of a rule and of a GlobalContextEntry share.
func decodeCall(f *policydecode.Fields) *call {
	c := &call{field: f.PathInRule(), own: f.Report.Namespace, method: f.At("method").OneOf("GET", "POST"), data: variables.Decode(f.At("data"))}
	switch {
	case f.At("urlPath").Text() != "":
		c.written, c.target = f.At("urlPath").Text(), variables.Decode(f.At("urlPath"))
		if f.Has("service") {
			f.At("service").Lint("has no effect beside urlPath")
		}
	case f.Has("service"):
		of := f.At("service").Fields()
		c.service, c.written, c.target = true, of.At("url").Required(), variables.Decode(of.At("url"))
		c.headers, c.caBundle = variables.Decode(of.At("headers")), variables.Decode(of.At("caBundle"))
		of.Done()
	default:
		f.Fail("needs a urlPath or a service")
	}
	if c.data != nil && c.method == "GET" {
		f.At("data").Lint("is only sent with method POST")
	}
	return c
}

// ask describes the request; prefix names its owner.
func (c *call) ask(prefix string) engine.Ask {
	what := prefix + c.method + " " + c.written
	if c.service {
		return engine.Ask{Of: engine.AskService, What: what}
	}
	return engine.Ask{Of: engine.AskAPI, What: what, Method: c.method, Path: outline(c.written)}
}

// outline is a path in which "*" stands for each variable.
func outline(path string) string {
	var out strings.Builder
	segments, _ := variables.Split(path) // a path that cannot be read is an error of the policy
	for _, s := range segments {
		if s.Variable != nil {
			s.Text = "*"
		}
		out.WriteString(s.Text)
	}
	return out.String()
}

// request is a call whose variables are resolved.
type request struct {
	*call
	target   string // a path of the API server, or the URL of a service
	body     []byte
	header   map[string][]string
	caBundle string
}

func (c *call) render(s *variables.Scope) (*request, error) {
	r := &request{call: c}
	var err error
	if r.target, err = renderText(c.target, s); err != nil {
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
	case r.service:
		return r.fetch(from)
	default:
		return r.ask(from)
	}
}

// ask makes a request to the API server, if it is one that a policy may make.
func (r *request) ask(from *Sources) (any, error) {
	path, err := engine.ParseAPIPath(r.target)
	refusal := ""
	switch {
	case err != nil:
		refusal = err.Error()
	case path.Refusal(r.method) != "":
		refusal = path.Refusal(r.method)
	case r.own != "" && path.Namespace != r.own:
		refusal = fmt.Sprintf("a Policy in namespace %s can only read below /namespaces/%s/", r.own, r.own)
	}
	if refusal != "" {
		return nil, &jmespath.UnsupportedError{Reason: fmt.Sprintf("%s %s is refused: %s", r.method, r.target, refusal)}
	}
	if from.World.Raw == nil {
		return nil, &jmespath.UnsupportedError{Field: r.field, Reason: "there is no API server to read from"}
	}
	type key struct{ method, path, body string }
	answer, err := from.ask(key{r.method, path.String(), string(r.body)}, func(ctx context.Context) (any, error) {
		return decodeAnswer(from.World.Raw.Raw(ctx, r.method, path.String(), r.body))
	})
	var unanswered *engine.UnansweredError
	switch {
	case errors.As(err, &unanswered):
		return nil, fmt.Errorf("%w; apiCallResponses in a --values file can give the answer", err)
	case err != nil:
		return nil, fmt.Errorf("failed to %s resource with raw url: %s: %w", r.method, r.target, err)
	}
	return answer, nil
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

// Unsupported reports whether this program is the cause of an error, not the policy: it cannot, or may not,
// do what Kyverno could.
func Unsupported(err error) bool {
	var unsupported *jmespath.UnsupportedError
	var unanswered *engine.UnansweredError
	return errors.As(err, &unsupported) || errors.As(err, &unanswered)
}

// decisive reports whether no default may hide an error: the run was cancelled, this program cannot do what the
// expression asks for, or that depends on a value that is hidden.
func (from *Sources) decisive(err error) bool {
	return err != nil && (from.Context.Err() != nil || Unsupported(err))
}

// unreadableAnswer is an answer that cannot be used.
type unreadableAnswer struct{ err error }

func (e *unreadableAnswer) Error() string { return fmt.Sprintf("the answer is not JSON: %v", e.err) }

func (e *unreadableAnswer) Unwrap() error { return e.err }

// dataPath is the jmesPath of a context entry, which may hold variables. A nil one
// takes the data as it is.
type dataPath struct {
	template *variables.Template
	compiled *jmespath.Expression // when there are no variables
}

func decodeDataPath(n policydecode.Node) *dataPath {
	if n.Text() == "" {
		return nil
	}
	p := &dataPath{template: variables.Decode(n)}
	if p.template != nil && p.template.Static() {
		p.compiled = variables.DecodeExpression(n)
	}
	return p
}

// expression is the path with its variables resolved.
func (p *dataPath) expression(s *variables.Scope) (*jmespath.Expression, error) {
	if p.compiled != nil {
		return p.compiled, nil
	}
	rendered, err := p.template.Render(s)
	if err != nil {
		return nil, err
	}
	path, ok := rendered.(string)
	if !ok {
		return nil, fmt.Errorf("jmesPath must be a string, not %s", policydecode.TypeName(rendered))
	}
	return jmespath.Compile(path)
}

// pick applies the path to data that has been read.
func (p *dataPath) pick(s *variables.Scope, data any) (any, error) {
	if p == nil {
		return data, nil
	}
	expression, err := p.expression(s)
	if err != nil {
		return nil, fmt.Errorf("failed to substitute variables in jmesPath: %w", err)
	}
	result, err := expression.Search(s.Interpreter(), data)
	s.Picked(expression)
	if err != nil {
		return nil, fmt.Errorf("failed to apply JMESPath %s: %w", expression, err)
	}
	return result, nil
}

func (p *dataPath) notIdempotent() string {
	switch {
	case p == nil:
		return ""
	case p.compiled != nil:
		return p.compiled.NotIdempotent()
	default:
		return p.template.NotIdempotent()
	}
}

// renderText renders a template that must give a string; a missing one is empty.
func renderText(t *variables.Template, s *variables.Scope) (string, error) {
	if t == nil {
		return "", nil
	}
	value, err := t.Render(s)
	if err != nil {
		return "", err
	}
	out, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("must be a string, not %s", policydecode.TypeName(value))
	}
	return out, nil
}
