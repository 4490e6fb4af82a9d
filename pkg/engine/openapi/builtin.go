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

// kubernetes has the schemas of Kubernetes' own types, without descriptions: a file for each Go package, read
// when a kind needs it.
//
//go:generate ../../../tools/openapi/generate.sh kubernetes
//go:embed kubernetes/*.json
var kubernetes embed.FS

// builtin caches the schemas read so far.
var builtin = struct { //nolint:gochecknoglobals // a cache of embedded files
	mu        sync.Mutex
	documents map[schema.GroupVersionKind]*Document
	packages  map[string]map[string]json.RawMessage
	types     map[string]*spec.Schema
}{
	documents: map[schema.GroupVersionKind]*Document{},
	packages:  map[string]map[string]json.RawMessage{},
	types:     map[string]*spec.Schema{},
}

// Builtin returns the schema of a kind in client-go's scheme, as an API server of its version publishes it;
// nil for a kind that is not Kubernetes' own.
func Builtin(gvk schema.GroupVersionKind) (*Document, error) {
	builtin.mu.Lock()
	defer builtin.mu.Unlock()
	if d, ok := builtin.documents[gvk]; ok {
		return d, nil
	}
	d, err := readDocument(gvk)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", gvk, err)
	}
	builtin.documents[gvk] = d
	return d, nil
}

func readDocument(gvk schema.GroupVersionKind) (*Document, error) {
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
	if err := collect(named.OpenAPIModelName(), components); err != nil {
		return nil, err
	}
	kind := *components[named.OpenAPIModelName()]
	kind.Extensions = maps.Clone(kind.Extensions)
	kind.AddExtension(kindExtension,
		[]any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}})
	components[named.OpenAPIModelName()] = &kind
	return newDocument(components)
}

// collect adds a type, and all types that it refers to.
func collect(name string, to map[string]*spec.Schema) error {
	if to[name] != nil {
		return nil
	}
	text, err := typeText(name)
	if err != nil {
		return err
	}
	if builtin.types[name] == nil {
		var s spec.Schema
		if err := json.Unmarshal(text, &s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		builtin.types[name] = &s
	}
	to[name] = builtin.types[name]
	for _, reference := range references.FindAllSubmatch(text, -1) {
		if err := collect(string(reference[1]), to); err != nil {
			return err
		}
	}
	return nil
}

var references = regexp.MustCompile(`"#` + componentPrefix + `([^"]+)"`)

func typeText(name string) (json.RawMessage, error) {
	home := name[:strings.LastIndexByte(name, '.')+1]
	if builtin.packages[home] == nil {
		data, err := kubernetes.ReadFile("kubernetes/" + home + "json")
		if err != nil {
			return nil, err
		}
		types := map[string]json.RawMessage{}
		if err := json.Unmarshal(data, &types); err != nil {
			return nil, fmt.Errorf("%s: %w", home, err)
		}
		builtin.packages[home] = types
	}
	text, ok := builtin.packages[home][name]
	if !ok {
		return nil, fmt.Errorf("no type %s", name)
	}
	return text, nil
}
