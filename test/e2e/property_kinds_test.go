package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func newProperty(t *testing.T) *property {
	t.Helper()
	made := 0
	newName := func() string { made++; return fmt.Sprintf("random-%d", made) }
	p := &property{writePath: newWritePath(t), counted: map[string]int{}, newName: newName}
	archive, err := txtar.ParseFile(filepath.Join("testdata", "property", "kinds.txtar"))
	check(t, err)
	shapes, objects := map[string]*shape{}, map[string]map[string]any{}
	for _, f := range archive.Files {
		name, isSchema := strings.CutSuffix(f.Name, ".schema")
		if isSchema {
			shapes[name] = &shape{}
			check(t, yaml.Unmarshal(f.Data, shapes[name]))
			shapes[name].normalise()
			p.objects["schema/"+name] = string(f.Data)
			continue
		}
		var object map[string]any
		check(t, yaml.Unmarshal(f.Data, &object))
		objects[strings.TrimSuffix(f.Name, ".object")] = throughJSON(object).(map[string]any)
	}
	for _, kind := range []string{"Gizmo", "Loose"} {
		check(t, p.define(kind, strings.ToLower(kind)))
	}
	for _, k := range []struct{ name, object, changing, subresource string }{
		{"ConfigMap", "configmap", "configmap", ""},
		{"Secret", "secret", "secret", ""},
		{"Service", "service", "service", ""},
		{"Deployment", "deployment", "deployment", ""},
		{"Gizmo", "gizmo", "gizmo", ""},
		{"Loose", "loose", "loose", ""},
		{"Deployment", "deployment", "deployment", ""},
		{"Gizmo", "gizmo", "gizmo", ""},
		{"Deployment's status", "deployment", "deployment-status", "status"},
		{"Deployment's scale", "deployment", "scale", "scale"},
		{"Gizmo's status", "gizmo", "gizmo", "status"},
	} {
		p.kinds = append(p.kinds, newPropertyKind(k.name, objects[k.object], k.subresource,
			shapes[k.object], shapes[k.changing], shapes["metadata"]))
	}
	return p
}

func newPropertyKind(name string, object map[string]any, subresource string, whole, changing, metadata *shape) *propertyKind {
	gvk := schema.FromAPIVersionAndKind(object["apiVersion"].(string), object["kind"].(string))
	k := &propertyKind{name: name, object: object, subresource: subresource}
	k.key = engine.ObjectKey{GroupKind: gvk.GroupKind(), Version: gvk.Version, Subresource: subresource}
	k.shape = whole.with("metadata", metadata)
	k.changing = k.shape
	switch subresource {
	case "status":
		k.changing = &shape{Type: "object", Required: []string{"status"}, Properties: map[string]*shape{"status": changing.Properties["status"]}}
	case "scale":
		k.changing = changing
	}
	return k
}

// with is the shape of an object, but for its status, with metadata.
func (s *shape) with(name string, p *shape) *shape {
	out := *s
	out.Properties = maps.Clone(s.Properties)
	delete(out.Properties, "status")
	out.Properties[name] = p
	return &out
}
