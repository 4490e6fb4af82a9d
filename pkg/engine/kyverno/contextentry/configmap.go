package contextentry

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// configMap is data of a ConfigMap.
type configMap struct {
	name, namespace *variables.Template
	own             string               // the namespace of a Policy
	written         types.NamespacedName // as the policy has it
}

func decodeConfigMap(n policydecode.Node) source {
	f := n.Fields()
	c := &configMap{name: variables.Decode(f.At("name")), namespace: variables.Decode(f.At("namespace")), own: n.Report.Namespace}
	c.written = types.NamespacedName{Namespace: text(f.Values["namespace"]), Name: text(f.Values["name"])}
	if c.name == nil {
		f.At("name").Fail("is missing")
	}
	f.Done()
	return c
}

// load gives {data, metadata}, as Kyverno does; binaryData stays out.
func (c *configMap) load(from *Sources, s *variables.Scope) (any, error) {
	name, err := renderText(c.name, s)
	if err != nil {
		return nil, fmt.Errorf("name: %w", err)
	}
	namespace, err := c.namespaceIn(s)
	if err != nil {
		return nil, fmt.Errorf("namespace: %w", err)
	}
	if from.World.Reader == nil {
		return nil, &jmespath.UnsupportedError{Field: "configMap", Reason: "there is no cluster and no --world to read ConfigMap " + namespace + "/" + name + " from"}
	}
	key := engine.ObjectKey{Version: "v1", Namespace: namespace, Name: name}
	key.Kind = "ConfigMap"
	var object *unstructured.Unstructured
	limit.Wait(from.Context, func() { object, err = from.World.Reader.Get(from.Context, key) })
	if err != nil {
		return nil, fmt.Errorf("failed to get configmap %s/%s: %w", namespace, name, err)
	}
	return map[string]any{"data": object.Object["data"], "metadata": object.Object["metadata"]}, nil
}

func (c *configMap) asks(Globals) []engine.Ask {
	namespace := cmp.Or(c.written.Namespace, c.own, "default")
	return []engine.Ask{{
		Of: engine.AskObjects, What: "ConfigMap " + namespace + "/" + c.written.Name,
		Objects: engine.Selection{Version: "v1", Kind: "ConfigMap", Namespace: variables.Plain(namespace), Name: variables.Plain(c.written.Name)},
	}}
}

func (c *configMap) notIdempotent() string { return "" }

// namespaceIn returns where the ConfigMap is: as the policy has it, else its own
// namespace, else "default". A Policy may not look anywhere else.
func (c *configMap) namespaceIn(s *variables.Scope) (string, error) {
	namespace, err := renderText(c.namespace, s)
	if err != nil {
		return "", err
	}
	switch {
	case namespace == "" && c.own != "":
		return c.own, nil
	case namespace == "":
		return "default", nil
	case c.own != "" && namespace != c.own:
		return "", fmt.Errorf("a Policy in namespace %s cannot read from namespace %s", c.own, namespace)
	}
	return namespace, nil
}
