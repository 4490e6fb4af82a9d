package contextentry

import (
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

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
func decodeCall(f *policydecode.Fields) *call {
	c := &call{field: f.PathInRule(), own: f.Report.Namespace, method: f.At("method").Text(), data: variables.Decode(f.At("data"))}
	switch c.method {
	case "":
		c.method = "GET"
	case "GET", "POST":
	default:
		f.At("method").Fail("must be GET or POST, not %q", c.method)
	}
	switch {
	case f.At("urlPath").Text() != "":
		c.written, c.urlPath = f.At("urlPath").Text(), variables.Decode(f.At("urlPath"))
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

// ask describes the request; prefix names its owner.
func (c *call) ask(prefix string) engine.Ask {
	what := prefix + c.method + " " + c.written
	if c.urlPath == nil {
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

func (c *call) decodeService(f *policydecode.Fields) {
	c.written, c.url, c.headers = f.At("url").Required(), variables.Decode(f.At("url")), variables.Decode(f.At("headers"))
	c.caBundle = variables.Decode(f.At("caBundle"))
	f.Done()
}
