//go:build ignore

// Command openapi writes the schemas of Kubernetes' own kinds, one file for each Go package and one line
// for each type: what an API server publishes, less the descriptions. generate.sh runs it.
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"schemas/generated"
)

func main() {
	packages := map[string]map[string]json.RawMessage{}
	ref := func(name string) spec.Ref { return spec.MustCreateRef("#/components/schemas/" + name) }
	for name, definition := range generated.GetOpenAPIDefinitions(ref) {
		delete(definition.Schema.Extensions, common.ExtensionV2Schema)
		text, err := json.Marshal(definition.Schema)
		if err != nil {
			log.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal(text, &plain); err != nil {
			log.Fatal(err)
		}
		withoutDescriptions(plain)
		if text, err = json.Marshal(plain); err != nil {
			log.Fatal(err)
		}
		home := name[:strings.LastIndex(name, ".")]
		if packages[home] == nil {
			packages[home] = map[string]json.RawMessage{}
		}
		packages[home][name] = text
	}
	for home, types := range packages {
		var out bytes.Buffer
		separator := "{\n"
		for _, name := range slices.Sorted(maps.Keys(types)) {
			key, _ := json.Marshal(name)
			out.WriteString(separator + string(key) + ": " + string(types[name]))
			separator = ",\n"
		}
		out.WriteString("\n}\n")
		if err := os.WriteFile(filepath.Join(os.Args[1], home+".json"), out.Bytes(), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// withoutDescriptions takes the texts for people out of a schema. A property may be called
// "description", too: that one is a map.
func withoutDescriptions(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, isText := v["description"].(string); isText {
			delete(v, "description")
		}
		for _, below := range v {
			withoutDescriptions(below)
		}
	case []any:
		for _, below := range v {
			withoutDescriptions(below)
		}
	}
}
