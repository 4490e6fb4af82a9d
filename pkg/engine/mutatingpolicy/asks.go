package mutatingpolicy

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Asking has the expressions of a policy and their context.
type Asking struct {
	*cel.Scope
	Namespace string // of a NamespacedMutatingPolicy, which reads only in it
	Entries   *Entries
}

// Asks returns the distinct reads of the expressions from the World.
func Asks(a Asking) []engine.Ask {
	var out []engine.Ask
	add := func(ask engine.Ask) {
		if !slices.ContainsFunc(out,
			func(known engine.Ask) bool { return known.Of == ask.Of && known.What == ask.What }) {
			out = append(out, ask)
		}
	}
	named := map[string]bool{}
	for _, c := range a.Calls() {
		named[c.On] = true
		switch c.On {
		case resourceName:
			if ask, ok := a.resource(c); ok {
				add(ask)
			}
		case globalContextName:
			add(a.global(c))
		}
	}
	for _, other := range []struct {
		variable, what string
		of             engine.AskOf
	}{
		{resourceName, "objects that an expression names", engine.AskObjects},
		{globalContextName, "a GlobalContextEntry that an expression names", engine.AskObjects},
		{httpName, "web services that expressions name", engine.AskService},
		{imageName, "images that expressions name", engine.AskRegistry},
	} {
		if a.Uses(other.variable) && (!named[other.variable] || other.of != engine.AskObjects) {
			add(engine.Ask{Of: other.of, What: other.what})
		}
	}
	return out
}

// resource returns the reads of resource.Get(), List() and Post(); ToGVR() reads nothing.
func (a Asking) resource(c cel.Call) (engine.Ask, bool) {
	args := append(slices.Clone(c.Args), "", "", "", "")
	if a.Namespace != "" { // there the functions have no namespace argument
		args = slices.Insert(args, 2, a.Namespace)
	}
	gv, err := schema.ParseGroupVersion(args[0])
	if err != nil {
		return engine.Ask{}, false
	}
	name, subresource, _ := strings.Cut(args[1], "/")
	s := engine.Selection{
		Group: gv.Group, Kind: "*", Resource: name, Subresource: subresource, Namespace: args[2],
	}
	what := strings.TrimSpace(args[1] + " of " + args[0])
	if args[0] == "" || args[1] == "" {
		return engine.Ask{Of: engine.AskObjects, What: "objects that an expression names"}, true
	}
	switch c.Function {
	case "Get":
		s.Name = cmp.Or(args[3], engine.Computed)
		s.Namespace = cmp.Or(s.Namespace, engine.Computed)
	case "List":
	case "Post":
		path := "/apis/"
		if gv.Group == "" {
			path = "/api/"
		}
		path += gv.String() + "/" + args[1]
		return engine.Ask{Of: engine.AskAPI, What: "POST " + path, Method: "POST", Path: path}, true
	default:
		return engine.Ask{}, false
	}
	if s.Name != "" && s.Name != engine.Computed && s.Namespace != engine.Computed {
		what += " " + strings.TrimPrefix(s.Namespace+"/"+s.Name, "/")
	}
	return engine.Ask{Of: engine.AskObjects, What: what, Objects: s}, true
}

// global returns the reads of globalContext.Get(). If the entry is not among the documents, only the entry
// itself is known.
func (a Asking) global(c cel.Call) engine.Ask {
	name := ""
	if len(c.Args) > 0 {
		name = c.Args[0]
	}
	what := "GlobalContextEntry " + name
	e := a.Entries.byName[name]
	switch {
	case e == nil:
		s := engine.Selection{
			Group: policydecode.GlobalContextKind.Group, Kind: policydecode.GlobalContextKind.Kind, Name: name,
		}
		return engine.Ask{Of: engine.AskObjects, What: strings.TrimSpace(what), Objects: s}
	case e.Call == nil:
		return engine.Ask{Of: engine.AskObjects, What: what, Objects: e.Lists()}
	case e.Call.path != "":
		return engine.Ask{Of: engine.AskAPI, What: what + ": GET " + e.Call.path, Method: "GET", Path: e.Call.path}
	default:
		return engine.Ask{Of: engine.AskService, What: what + ": GET " + e.Call.service}
	}
}
