package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
)

// schemas are the schemas of kinds: Kubernetes' own, of the files that the program embeds, and those of
// CustomResourceDefinitions. They are read as bare JSON, without the code under test.
type schemas struct {
	definitions map[string]map[string]any                  // Kubernetes' own, by model name
	custom      map[schema.GroupVersionKind]map[string]any // openAPIV3Schema
	cluster     map[schema.GroupVersionKind]bool           // custom ones without a namespace
}

// newSchemas reads Kubernetes' schemas of a checkout, and adds CustomResourceDefinitions.
func newSchemas(source string, crds []map[string]any) (*schemas, error) {
	s := &schemas{map[string]map[string]any{}, map[schema.GroupVersionKind]map[string]any{}, map[schema.GroupVersionKind]bool{}}
	files, err := filepath.Glob(filepath.Join(source, "pkg/engine/openapi/kubernetes/*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s holds no schema: %w", source, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(content, &s.definitions); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	for _, crd := range crds {
		spec := object(crd["spec"])
		for _, version := range list(spec["versions"]) {
			gvk := schema.GroupVersionKind{
				Group: text(spec["group"]), Version: text(object(version)["name"]), Kind: text(object(spec["names"])["kind"]),
			}
			s.custom[gvk] = object(object(object(version)["schema"])["openAPIV3Schema"])
			s.cluster[gvk] = spec["scope"] == "Cluster"
		}
	}
	return s, nil
}

// kinds are those that a kind of a rule names: of each group the version that is served longest.
func (s *schemas) kinds(name string) []schema.GroupVersionKind {
	kind, _, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ".")
	best := map[string]schema.GroupVersionKind{}
	if strings.Contains(kind, "*") {
		return slices.Concat(s.kinds("Pod"), s.kinds("Deployment"), s.kinds("ConfigMap"), s.kinds("Namespace"))
	}
	known := slices.Collect(maps.Keys(s.custom))
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if gvk.Group != "extensions" {
			known = append(known, gvk)
		}
	}
	for _, gvk := range known {
		old, ok := best[gvk.Group]
		if gvk.Kind == kind && gvk.Version != runtime.APIVersionInternal && (!ok || len(gvk.Version) < len(old.Version) ||
			len(gvk.Version) == len(old.Version) && gvk.Version < old.Version) {
			best[gvk.Group] = gvk
		}
	}
	return slices.SortedFunc(maps.Values(best), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
}

func (s *schemas) of(gvk schema.GroupVersionKind) map[string]any {
	if custom, ok := s.custom[gvk]; ok {
		return custom
	}
	if o, err := scheme.Scheme.New(gvk); err == nil {
		if named, ok := o.(interface{ OpenAPIModelName() string }); ok {
			return s.definitions[named.OpenAPIModelName()]
		}
	}
	return nil
}

// resolve follows references.
func (s *schemas) resolve(in map[string]any) (out map[string]any, name string) {
	if all := list(in["allOf"]); len(all) == 1 {
		in = object(all[0])
	}
	if ref, ok := in["$ref"].(string); ok {
		name = strings.TrimPrefix(ref, "#/components/schemas/")
		return s.definitions[name], name
	}
	return in, ""
}

// needed reports whether a field has parts that are required, such as the containers of a Pod's spec.
func (s *schemas) needed(field map[string]any) bool {
	in, name := s.resolve(field)
	return strings.HasSuffix(name, "Spec") && len(list(in["required"])) > 0
}

// pool has what stands in a policy, so that objects meet it: names of fields, values, numbers.
type pool struct {
	fields  map[string]bool
	pairs   [][2]string // keys with their values, such as labels
	strings []string
	numbers []float64
}

var (
	words     = regexp.MustCompile(`[\pL\pN_][\pL\pN_./:-]*`)
	quoted    = regexp.MustCompile("'([^']*)'|\"([^\"]*)\"|`([^`]*)`")
	operators = regexp.MustCompile(`^[!<>=]*\s*`)
	wildcards = strings.NewReplacer("*", "x1", "?", "z") //nolint:gochecknoglobals // an immutable table
)

func newPool(policies ...any) *pool {
	p := &pool{fields: map[string]bool{}}
	for _, policy := range policies {
		p.collect(policy)
	}
	slices.Sort(p.strings)
	p.strings = slices.Compact(p.strings)
	return p
}

func (p *pool) collect(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			name := strings.Trim(key, "(+<=^X)")
			if value, ok := v[key].(string); ok && len(value) < 64 {
				p.pairs = append(p.pairs, [2]string{name, wildcards.Replace(value)})
			}
			p.word(name)
			p.collect(v[key])
		}
	case []any:
		for _, e := range v {
			p.collect(e)
		}
	case string:
		p.text(v)
	case nil:
	default:
		p.text(fmt.Sprint(v))
	}
}

func (p *pool) text(v string) {
	for _, part := range strings.FieldsFunc(v, func(r rune) bool { return r == '|' || r == '&' }) {
		part = strings.TrimSpace(operators.ReplaceAllString(strings.TrimSpace(part), ""))
		if !strings.Contains(part, "{{") && len(part) < 80 {
			p.literal(part)
		}
	}
	for _, m := range quoted.FindAllStringSubmatch(v, -1) {
		p.literal(m[1] + m[2] + m[3])
	}
	for _, word := range words.FindAllString(v, -1) {
		p.word(word)
	}
}

func (p *pool) literal(v string) {
	p.strings = append(p.strings, wildcards.Replace(v), strings.NewReplacer("*", "", "?", "0").Replace(v))
	if n, err := strconv.ParseFloat(v, 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
		p.numbers = append(p.numbers, n, n+1, n-1, n+0.5)
	}
}

func (p *pool) word(v string) {
	p.strings = append(p.strings, v)
	for _, field := range strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune("./:", r) }) {
		p.fields[field] = true
	}
}

// edges are values on which languages differ.
var (
	edges = []string{ //nolint:gochecknoglobals // an immutable table
		"", " ", "a", "A", "0", "-1", "0.5", "1.0", "1e3", "0x10", "Inf", "NaN", "9223372036854775808", "true", "null", "[]", "ä", "ǅ", "a/b", "a~1b",
		`q"d`, "it's", `b\d`, "line\nbreak", "a,b", "a:b:c", ":", "1h", "-5m", "90s", "1d", "2562048h", "100m", "1Gi", "1.5Gi", "1E", "1000000", "v1.2.3",
		"1.2", "1.2.3-rc.1", "2024-02-29T00:00:00Z", "2024-02-29T00:00:00+02:00", "9999-12-31T23:59:59Z", "nginx", "nginx:latest", "ghcr.io/a/b@sha256:" +
			strings.Repeat("a", 64), "localhost:5000/x:1", "x" + strings.Repeat("y", 300), "YQ==", "{\"a\":1}",
	}
	quantities = []string{"0", "1", "-1", "100m", "1500m", "0.5", "1Gi", "1024Mi", "1G", "2.5Gi", "1e3", "1E", "1n"} //nolint:gochecknoglobals // an immutable table
	integers   = []int64{0, 1, -1, 2, 3, 80, 443, math.MaxInt32, math.MinInt32, 1 << 53, 1<<53 + 1, math.MaxInt64}   //nolint:gochecknoglobals // an immutable table
	doubles    = []float64{0, 1, -1, 0.5, 1.5, -2.5, 0.1, 3, 1e-7, 1e21, 9007199254740993}                           //nolint:gochecknoglobals // an immutable table
)

// generator makes objects of schemas, as a server would store them.
type generator struct {
	*schemas
	*pool
	*rand.Rand
	namespaces []string
	taken      map[string]bool
	examples   map[schema.GroupVersionKind][]map[string]any // objects that the policy is known to be about
}

// object makes an object of a kind; nil if a server would refuse what came out.
func (g *generator) object(gvk schema.GroupVersionKind, number int) map[string]any {
	out := object(g.value(g.of(gvk), "", 0))
	if out == nil {
		return nil
	}
	if like := g.examples[gvk]; len(like) > 0 && g.IntN(2) == 0 {
		out = object(g.mixed(like[g.IntN(len(like))], out))
	}
	delete(out, "status")
	out["apiVersion"], out["kind"] = gvk.GroupVersion().String(), gvk.Kind
	g.metadata(out, gvk, number)
	if !scheme.Scheme.Recognizes(gvk) {
		return out
	}
	typed, err := scheme.Scheme.New(gvk)
	if err != nil {
		return nil
	}
	content, err := json.Marshal(out)
	if err != nil || json.Unmarshal(content, typed) != nil {
		return nil
	}
	if content, err = json.Marshal(typed); err != nil {
		return nil
	}
	out = map[string]any{}
	if err := json.Unmarshal(content, &out); err != nil {
		return nil
	}
	delete(out, "status")
	return out
}

// mixed is a value with some parts of another one.
func (g *generator) mixed(v, other any) any {
	into, ok := v.(map[string]any)
	from, same := other.(map[string]any)
	if !ok || !same {
		if g.IntN(8) == 0 && reflect.TypeOf(v) == reflect.TypeOf(other) {
			return other
		}
		return v
	}
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(into)) {
		if e, ok := from[key]; ok {
			out[key] = g.mixed(into[key], e)
		} else if g.IntN(10) > 0 {
			out[key] = into[key]
		}
	}
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, ok := into[key]; !ok && g.IntN(4) == 0 {
			out[key] = from[key]
		}
	}
	return out
}

// metadata is made apart: what the server would not take, it refuses before any policy sees it.
func (g *generator) metadata(out map[string]any, gvk schema.GroupVersionKind, number int) {
	m := map[string]any{"uid": fmt.Sprintf("judge-%d", number)}
	for {
		m["name"] = strings.ToLower(g.string())
		if g.IntN(3) == 0 {
			m["name"] = fmt.Sprintf("%s-%d", m["name"], number)
		}
		if custom := g.custom[gvk] != nil; custom && !g.cluster[gvk] || !custom && !clusterKinds[gvk.Kind] {
			m["namespace"] = g.namespaces[g.IntN(len(g.namespaces))]
		}
		key := fmt.Sprint(gvk, m["namespace"], m["name"])
		if len(validation.IsDNS1123Subdomain(text(m["name"]))) == 0 && !g.taken[key] {
			g.taken[key] = true
			break
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		values := map[string]any{}
		for range g.IntN(5) {
			k, v := g.string(), g.string()
			if len(g.pairs) > 0 && g.IntN(2) == 0 {
				pair := g.pairs[g.IntN(len(g.pairs))]
				k, v = pair[0], pair[1]
			}
			if validLabel(k, v) || field == "annotations" && validLabel(k, "") {
				values[k] = v
			}
		}
		maps.Copy(values, object(object(out["metadata"])[field]))
		if len(values) > 0 {
			m[field] = values
		}
	}
	out["metadata"] = m
}

func validLabel(key, value string) bool {
	return len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0
}

func validName(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

var clusterKinds = map[string]bool{ //nolint:gochecknoglobals // an immutable table
	"Namespace": true, "Node": true, "PersistentVolume": true, "ClusterRole": true, "ClusterRoleBinding": true, "StorageClass": true,
	"PriorityClass": true, "IngressClass": true, "CSIDriver": true, "RuntimeClass": true, "ValidatingWebhookConfiguration": true,
	"MutatingWebhookConfiguration": true, "CustomResourceDefinition": true,
}

func (g *generator) value(in map[string]any, field string, depth int) any {
	in, name := g.resolve(in)
	if in["nullable"] == true && g.IntN(5) == 0 {
		return nil
	}
	if enum := list(in["enum"]); len(enum) > 0 {
		return enum[g.IntN(len(enum))]
	}
	if strings.HasSuffix(name, "resource.Quantity") {
		return quantities[g.IntN(len(quantities))]
	}
	if in["x-kubernetes-int-or-string"] == true || in["format"] == "int-or-string" {
		return []any{g.integer(), g.string(), "50%"}[g.IntN(3)]
	}
	switch in["type"] {
	case "string":
		switch in["format"] {
		case "date-time":
			return []string{"2024-02-29T00:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}[g.IntN(3)]
		case "byte":
			return "YQ=="
		}
		return g.string()
	case "integer":
		if in["format"] == "int32" {
			return int64(int32(g.integer()))
		}
		return g.integer()
	case "number":
		if len(g.numbers) > 0 && g.IntN(2) == 0 {
			return g.numbers[g.IntN(len(g.numbers))]
		}
		return doubles[g.IntN(len(doubles))]
	case "boolean":
		return g.IntN(2) == 0
	case "array":
		return g.list(in, field, depth)
	case "object":
		return g.fields(in, field, depth)
	}
	return g.any(depth)
}

func (g *generator) list(in map[string]any, field string, depth int) any {
	out, seen := []any{}, map[string]bool{}
	least := 0
	if field == "containers" {
		least = 1
	}
	for range max(least, []int{0, 1, 1, 2, 2, 3, 4}[g.IntN(7)]) {
		e := g.value(object(in["items"]), field, depth+1)
		key := ""
		keys := slices.Clone(list(in["x-kubernetes-list-map-keys"]))
		if k, ok := in["x-kubernetes-patch-merge-key"]; ok {
			keys = append(keys, k)
		}
		for _, k := range keys {
			is := object(e)[text(k)]
			if k == "name" && !validName(text(is)) || is == "" { // which a server refuses
				object(e)[text(k)] = fmt.Sprintf("n%d", len(out))
			}
			key += fmt.Sprint(object(e)[text(k)], "/")
		}
		if volume := object(e); field == "volumes" && len(volume) == 1 && volume["name"] != nil {
			volume["emptyDir"] = map[string]any{} // as a server has it
		}
		if in["x-kubernetes-list-type"] == "set" {
			key = fmt.Sprint(e)
		}
		if key == "" || !seen[key] {
			out, seen[key] = append(out, e), true
		}
	}
	return out
}

func (g *generator) fields(in map[string]any, field string, depth int) any {
	out := map[string]any{}
	if more := object(in["additionalProperties"]); more != nil {
		for range g.IntN(4) {
			key, value := g.string(), g.value(more, field, depth+1)
			if _, ok := value.(string); ok && len(g.pairs) > 0 && g.IntN(2) == 0 {
				pair := g.pairs[g.IntN(len(g.pairs))]
				key, value = pair[0], pair[1]
			}
			if s, ok := value.(string); !ok || key != "" && (field == "annotations" || validLabel(key, s)) {
				out[key] = value
			}
		}
	}
	required := list(in["required"])
	properties := object(in["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		chance := 2
		switch {
		case slices.Contains(required, any(name)), g.schemas.needed(object(properties[name])):
			chance = 100
		case g.pool.fields[name] && depth < 15:
			chance = 75
		case depth > 4:
			continue
		}
		if g.IntN(100) < chance {
			out[name] = g.value(object(properties[name]), name, depth+1)
		}
	}
	if in["x-kubernetes-preserve-unknown-fields"] == true && g.IntN(2) == 0 {
		maps.Copy(out, object(g.any(depth)))
	}
	return out
}

// any is what a field without a type may have.
func (g *generator) any(depth int) any {
	switch n := g.IntN(12); {
	case n < 4:
		return g.string()
	case n < 6:
		return g.integer()
	case n < 7:
		return doubles[g.IntN(len(doubles))]
	case n < 8:
		return g.IntN(2) == 0
	case n < 9:
		return nil
	case n < 10 && depth < 8:
		return []any{g.any(depth + 2), g.any(depth + 2)}
	case depth < 8:
		out := map[string]any{}
		names := slices.Sorted(maps.Keys(g.pool.fields))
		for range min(len(names), g.IntN(4)) {
			out[names[g.IntN(len(names))]] = g.any(depth + 2)
		}
		return out
	}
	return g.string()
}

func (g *generator) string() string {
	if len(g.strings) > 0 && g.IntN(3) > 0 {
		return g.strings[g.IntN(len(g.strings))]
	}
	return edges[g.IntN(len(edges))]
}

func (g *generator) integer() int64 {
	if len(g.numbers) > 0 && g.IntN(2) == 0 {
		return int64(g.numbers[g.IntN(len(g.numbers))])
	}
	return integers[g.IntN(len(integers))]
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any            { l, _ := v.([]any); return l }
func text(v any) string           { s, _ := v.(string); return s }

// another is the definition of a kind of the same name in another group, which takes any fields.
func another(gvk schema.GroupVersionKind) map[string]any {
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	free := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": gvr.Resource + ".other.example.org"},
		"spec": map[string]any{
			"group": "other.example.org", "scope": "Namespaced",
			"names": map[string]any{"kind": gvk.Kind, "plural": gvr.Resource, "singular": strings.ToLower(gvk.Kind)},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": free, "data": free}}},
			}},
		},
	}
}
