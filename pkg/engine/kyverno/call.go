package kyverno

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

// call is a request in a policy.
type call struct {
	place    string // "context[0].apiCall"
	own      string // the namespace of a Policy
	method   string
	service  bool      // instead of the API server
	target   textField // a path on the API server, or the URL of a service
	caBundle textField
	data     *variables.Template // a list of {key, value}; may be nil
	headers  *variables.Template // likewise
}

// decodeCall reads the fields that apiCall of a rule and of a GlobalContextEntry share.
func decodeCall(f *policydecode.Fields) *call {
	c := &call{
		place: f.PathInRule(), own: f.Report.Namespace, method: f.At("method").OneOf("GET", "POST"),
		data: variables.Decode(f.At("data")),
	}
	switch {
	case f.At("urlPath").Text() != "":
		c.target = decodeText(f.At("urlPath"), "")
		if f.Has("service") {
			f.At("service").Refuse("Kyverno", "has no effect beside urlPath")
		}
	case f.Has("service"):
		of := f.At("service").Fields()
		of.At("url").Required()
		c.service, c.target, c.caBundle, c.headers = true, decodeText(of.At("url"), ""),
			decodeText(of.At("caBundle"), "caBundle: "), variables.Decode(of.At("headers"))
		of.Done()
	default:
		f.Fail("needs a urlPath or a service")
	}
	if c.data != nil && c.method == "GET" {
		f.At("data").Lint("is only sent with method POST")
	}
	return c
}

func (c *call) ask(prefix string) engine.Ask {
	what := prefix + c.method + " " + c.target.written
	if c.service {
		return engine.Ask{Of: engine.AskService, What: what}
	}
	var outline strings.Builder                      // the path, with "*" for each variable
	segments, _ := variables.Split(c.target.written) // an unreadable path is an error of the policy
	for _, s := range segments {
		if s.Variable != nil {
			s.Text = "*"
		}
		outline.WriteString(s.Text)
	}
	return engine.Ask{Of: engine.AskAPI, What: what, Method: c.method, Path: outline.String()}
}

func (c *call) render(s *variables.Scope) (r engine.RemoteRequest, err error) {
	r.Method = c.method
	if r.URL, err = c.target.render(s); err != nil {
		return r, err
	}
	bundle, err := c.caBundle.render(s)
	if err != nil {
		return r, err
	}
	r.CABundle = []byte(bundle)
	err = eachPair(c.headers, s, func(key string, value any) error {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("%s must be a string, not %s", key, policydecode.TypeName(value))
		}
		if r.Header == nil {
			r.Header = map[string][]string{}
		}
		r.Header[key] = append(r.Header[key], text)
		return nil
	})
	if err != nil {
		return r, fmt.Errorf("headers: %w", err)
	}
	if c.method != "POST" {
		return r, nil
	}
	body := map[string]any{}
	err = eachPair(c.data, s, func(key string, value any) error { body[key] = value; return nil })
	if err != nil {
		return r, fmt.Errorf("data: %w", err)
	}
	r.Body, err = json.Marshal(body)
	return r, err
}

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

// answer returns the decoded answer to a request: the user's, or else the server's, which is asked once per
// run.
func (c *call) answer(from *Sources, r engine.RemoteRequest) (any, error) {
	body, given, err := from.Values.Answer(r.Method, r.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed to %s %s: %w", r.Method, r.URL, err)
	case given:
		return from.answered(body), nil
	}
	written := r.URL
	send, err := c.sender(from.World, &r)
	if err != nil {
		return nil, err
	}
	type key struct {
		service bool
		request string
	}
	id, err := json.Marshal(r) // sorts header names
	if err != nil {
		return nil, err
	}
	answer, err := engine.Once(from.Context, from.World, key{c.service, string(id)},
		func(w *engine.World) (any, error) {
			content, err := send(from.Context, w)
			if err != nil {
				return nil, err
			}
			return decodeAnswer(content)
		})
	var unanswered *engine.UnansweredError
	switch {
	case errors.As(err, &unanswered):
		err = fmt.Errorf("%w; apiCallResponses in a --values file can give the answer", err)
	case err != nil && c.service:
		err = fmt.Errorf("failed to execute HTTP request: %w", err)
	case err != nil:
		err = fmt.Errorf("failed to %s resource with raw url: %s: %w", r.Method, written, err)
	}
	return answer, err
}

// sender returns the function that sends a request to a service, or to the API server if a policy may make
// it. Kyverno adds the token of its ServiceAccount for services; the user's own credentials are never sent.
func (c *call) sender(w *engine.World,
	r *engine.RemoteRequest,
) (func(context.Context, *engine.World) ([]byte, error), error) {
	switch {
	case c.service && w.Remote == nil:
		return nil, &engine.UnsupportedError{Field: c.place + ".service", Err: errors.New("calls to web services are made only with --allow-http")}
	case c.service:
		return func(ctx context.Context, w *engine.World) ([]byte, error) { return w.Remote.Fetch(ctx, *r) }, nil
	}
	path, err := engine.ParseAPIPath(r.URL)
	refusal := ""
	switch {
	case err != nil:
		refusal = err.Error()
	case path.Refusal(r.Method) != "":
		refusal = path.Refusal(r.Method)
	case c.own != "" && path.Namespace != c.own:
		refusal = fmt.Sprintf("a Policy in namespace %s can only read below /namespaces/%s/", c.own, c.own)
	}
	switch {
	case refusal != "":
		return nil, &engine.UnsupportedError{Err: fmt.Errorf("%s %s is refused: %s", r.Method, r.URL,
			refusal)}
	case w.Raw == nil:
		return nil, &engine.UnsupportedError{Field: c.place, Err: errors.New("there is no API server to read from")}
	}
	r.URL = path.String()
	return func(ctx context.Context, w *engine.World) ([]byte, error) {
		return w.Raw.Raw(ctx, r.Method, r.URL, r.Body)
	}, nil
}

var errUnreadable = errors.New("the answer is not JSON")

// decodeAnswer decodes JSON, with numbers as in unstructured objects.
func decodeAnswer(content []byte) (any, error) {
	var out any
	if err := utiljson.Unmarshal(content, &out); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return out, nil
}

// decisive reports whether an error must not be hidden by a default: the run was cancelled, this program
// cannot evaluate the expression, or the result depends on a hidden value.
func (from *Sources) decisive(err error) bool {
	return err != nil && (from.Context.Err() != nil || engine.OutcomeOf(err) == engine.Unsupported)
}

// dataPath is the jmesPath of a context entry; it may hold variables.
type dataPath struct {
	template      *variables.Template // nil takes the data as it is
	notIdempotent string              // as in source
}

func decodeDataPath(n policydecode.Node) (p dataPath) {
	if n.Text() == "" {
		return p
	}
	p.template = variables.Decode(n)
	p.notIdempotent = p.template.NotIdempotent()
	if p.template != nil && p.template.Static() {
		if x := variables.DecodeExpression(n); x != nil {
			p.notIdempotent = x.NotIdempotent()
		}
	}
	return p
}

func (p dataPath) expression(s *variables.Scope) (*jmespath.Expression, error) {
	rendered, err := p.template.Render(s)
	if err != nil {
		return nil, err
	}
	path, ok := rendered.(string)
	if !ok {
		return nil, fmt.Errorf("jmesPath must be a string, not %s", policydecode.TypeName(rendered))
	}
	return jmespath.CompileRendered(path)
}

func (p dataPath) pick(s *variables.Scope, data any) (any, error) {
	if p.template == nil {
		return data, nil
	}
	expression, err := p.expression(s)
	if err != nil {
		return nil, fmt.Errorf("failed to substitute variables in jmesPath: %w", err)
	}
	return search(expression, s, data)
}

func search(expression *jmespath.Expression, s *variables.Scope, data any) (any, error) {
	result, err := expression.Search(s.Interpreter(), data)
	s.Picked(expression)
	if err != nil {
		return nil, fmt.Errorf("failed to apply JMESPath %s: %w", expression, err)
	}
	return result, nil
}

// textField is a string of a policy that may hold variables.
type textField struct {
	written  string
	template *variables.Template // may be nil
	prefix   string              // of errors
}

func decodeText(n policydecode.Node, prefix string) textField {
	written, _ := n.Value.(string)
	return textField{written, variables.Decode(n), prefix}
}

// render resolves the variables; a missing field is empty.
func (t textField) render(s *variables.Scope) (string, error) {
	if t.template == nil {
		return "", nil
	}
	value, err := t.template.Render(s)
	out, ok := value.(string)
	if err == nil && !ok {
		err = fmt.Errorf("must be a string, not %s", policydecode.TypeName(value))
	}
	if err != nil {
		return "", fmt.Errorf("%s%w", t.prefix, err)
	}
	return out, nil
}
