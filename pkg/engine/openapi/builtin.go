package openapi

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// kubernetes has the schemas of Kubernetes' own types, without their descriptions: a file for
// each Go package, which is read when a kind needs it.
//
//go:generate ../../../tools/openapi/generate.sh kubernetes
//go:embed kubernetes/*.json
var kubernetes embed.FS

// Builtin holds the schemas of the kinds in client-go's scheme, as an API server of its version
// publishes them. The zero value is ready for use. It is safe for concurrent use.
type Builtin struct {
	mu        sync.Mutex
	documents map[schema.GroupVersionKind]*Document
	packages  map[string]map[string]json.RawMessage
	types     map[string]*spec.Schema
}

// Document returns a document that describes one kind; nil if it is not one of Kubernetes' own.
func (b *Builtin) Document(gvk schema.GroupVersionKind) (*Document, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d, ok := b.documents[gvk]; ok {
		return d, nil
	}
	d, err := b.read(gvk)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", gvk, err)
	}
	if b.documents == nil {
		b.documents = map[schema.GroupVersionKind]*Document{}
	}
	b.documents[gvk] = d
	return d, nil
}

func (b *Builtin) read(gvk schema.GroupVersionKind) (*Document, error) {
	if !scheme.Scheme.Recognizes(gvk) {
		return nil, nil
	}
	object, err := scheme.Scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	named, ok := object.(interface{ OpenAPIModelName() string })
	if !ok {
		return nil, nil
	}
	components := map[string]*spec.Schema{}
	if err := b.collect(named.OpenAPIModelName(), components); err != nil {
		return nil, err
	}
	kind := *components[named.OpenAPIModelName()]
	kind.Extensions = maps.Clone(kind.Extensions)
	kind.AddExtension(kindExtension, []any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}})
	components[named.OpenAPIModelName()] = &kind
	return newDocument(components)
}

// collect adds a type, and all that it refers to.
func (b *Builtin) collect(name string, to map[string]*spec.Schema) error {
	if to[name] != nil {
		return nil
	}
	text, err := b.text(name)
	if err != nil {
		return err
	}
	if b.types[name] == nil {
		var s spec.Schema
		if err := json.Unmarshal(text, &s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if b.types == nil {
			b.types = map[string]*spec.Schema{}
		}
		b.types[name] = &s
	}
	to[name] = b.types[name]
	for _, reference := range references.FindAllSubmatch(text, -1) {
		if err := b.collect(string(reference[1]), to); err != nil {
			return err
		}
	}
	return nil
}

var references = regexp.MustCompile(`"#` + componentPrefix + `([^"]+)"`)

// text returns the schema of a type as it is published.
func (b *Builtin) text(name string) (json.RawMessage, error) {
	home := name[:strings.LastIndexByte(name, '.')+1]
	if b.packages[home] == nil {
		data, err := kubernetes.ReadFile("kubernetes/" + home + "json")
		if err != nil {
			return nil, err
		}
		types := map[string]json.RawMessage{}
		if err := json.Unmarshal(data, &types); err != nil {
			return nil, fmt.Errorf("%s: %w", home, err)
		}
		if b.packages == nil {
			b.packages = map[string]map[string]json.RawMessage{}
		}
		b.packages[home] = types
	}
	text, ok := b.packages[home][name]
	if !ok {
		return nil, fmt.Errorf("no type %s", name)
	}
	return text, nil
}
