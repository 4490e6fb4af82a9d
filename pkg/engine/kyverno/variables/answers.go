package variables

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// answer replaces a server's answer to a request.
type answer struct {
	method string // empty for all
	target string // a path on the API server, or a URL
	status int64
	body   any
}

func (v *Values) addAnswers(n policydecode.Node) {
	for _, n := range n.List() {
		f := n.Fields()
		a := answer{method: strings.ToUpper(f.At("method").Text()), target: f.At("url").Text(), status: 200}
		switch path := f.At("urlPath").Text(); {
		case (path == "") == (a.target == ""):
			f.Fail("needs either a url or a urlPath")
		case a.target == "":
			a.target = path
		}
		if a.method != "" && a.method != "GET" && a.method != "POST" {
			f.At("method").Fail("must be GET or POST, not %q", a.method)
		}
		response := f.At("response").Fields()
		a.body = response.At("body").Value
		if a.body == nil {
			response.At("body").Fail("is missing")
		}
		if response.Has("statusCode") {
			code, _ := jmespath.Number(response.Values["statusCode"])
			a.status = int64(code)
			if a.status < 100 || a.status > 599 {
				response.At("statusCode").Fail("must be a number between 100 and 599")
			}
		}
		response.Done()
		f.Done()
		v.answers = append(v.answers, a)
	}
}

// Answer returns the user's answer for a request to a path on the API server or to a URL; an answer for its
// method precedes one for all methods. The error is the given status if it is not a success.
func (v *Values) Answer(method, target string) (body any, given bool, err error) {
	var found *answer
	for i, a := range v.answers {
		if a.target == target && (a.method == method || (a.method == "" && found == nil)) {
			found = &v.answers[i]
		}
	}
	switch {
	case found == nil:
		return nil, false, nil
	case found.status < 200 || found.status >= 300:
		body, _ := found.body.(map[string]any)
		if message, _ := body["message"].(string); message != "" { // of a Kubernetes Status
			return nil, true, fmt.Errorf("HTTP %d: %s", found.status, message)
		}
		return nil, true, fmt.Errorf("HTTP %d", found.status)
	}
	return found.body, true, nil
}

// entry replaces a GlobalContextEntry.
type entry struct {
	data        any
	root        *jmespath.Expression // nil for the whole data
	projections []projection
}

type projection struct {
	name string
	path *jmespath.Expression
}

func (v *Values) addEntries(n policydecode.Node) {
	for _, n := range n.List() {
		f := n.Fields()
		name := f.At("name").Required()
		e := &entry{data: f.At("data").Value}
		if e.data == nil {
			f.At("data").Fail("is missing")
		}
		if f.Has("fieldPath") {
			e.root = DecodeExpression(f.At("fieldPath"))
		}
		for _, n := range f.At("projections").List() {
			p := n.Fields()
			if one := (projection{p.At("name").Required(), DecodeExpression(p.At("path"))}); one.path != nil {
				e.projections = append(e.projections, one)
			}
			p.Done()
		}
		f.Done()
		v.entries[name] = e
	}
}

// DecodeExpression reads an expression; nil after an error, which goes to the node's report.
func DecodeExpression(n policydecode.Node) *jmespath.Expression {
	path, err := jmespath.Compile(n.Text())
	if err != nil {
		n.Fail("%w", err)
	}
	return path
}

// Entry returns the user's data for a GlobalContextEntry or one of its projections
// (cmd/cli/kubectl-kyverno/store/mock.go).
func (v *Values) Entry(in *jmespath.Interpreter, name, part string) (value any, given bool, err error) {
	e := v.entries[name]
	if e == nil {
		return nil, false, nil
	}
	value = e.data
	if e.root != nil {
		if value, err = e.root.Search(in, value); err != nil {
			return nil, true, fmt.Errorf("fieldPath: %w", err)
		}
	}
	if len(e.projections) > 0 {
		all := valuesTree{}
		for _, p := range e.projections {
			if all[p.name], err = p.path.Search(in, value); err != nil {
				return nil, true, fmt.Errorf("projection %s: %w", p.name, err)
			}
		}
		value = all
	}
	if part == "" {
		return value, true, nil
	}
	fields, _ := value.(map[string]any)
	if _, present := fields[part]; !present {
		return nil, true, fmt.Errorf("projection %q not found", part)
	}
	return fields[part], true, nil
}
