package translate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
)

// maker makes random queries, conditions and Pods.
type maker struct{ *rand.Rand }

func pick[T any](m maker, of ...T) T { return of[m.IntN(len(of))] }

var words = []string{"", "a", "b", "main", "web-1", "blue", "5", "05", "-3", "2.5", "1h", "60m", "2Gi", "500m", "1.2.3", "true", "a,b", "nginx:latest", "null", "x y", "日"}

func (m maker) text() string { return "'" + pick(m, words...) + "'" }

// query is an expression that is likely to have a value.
func (m maker) query(depth int) string {
	if depth <= 0 {
		return m.path()
	}
	sub := func() string { return m.query(depth - 1 - m.IntN(2)) }
	switch m.IntN(14) {
	case 0, 1:
		return m.path()
	case 2:
		return fmt.Sprintf("(%s || %s)", sub(), pick(m, sub(), m.text(), m.literal()))
	case 3:
		return fmt.Sprintf("(%s && %s)", sub(), sub())
	case 4:
		return fmt.Sprintf("(%s && %s || %s)", sub(), sub(), sub())
	case 5:
		return fmt.Sprintf("(%s %s %s)", sub(), pick(m, "==", "!=", "<", ">=", ">", "<="), pick(m, sub(), m.text(), m.literal()))
	case 6:
		return "!" + sub()
	case 7:
		return fmt.Sprintf("%s | %s", sub(), pick(m, "@", "[0]", "length(@)", "keys(@)", "name", "[]", "[0].name"))
	case 8:
		return m.list(depth)
	case 9:
		return fmt.Sprintf("%s%s", m.list(depth), pick(m, " | [0]", " | [-1]", " | [1].name", "[?@ == 'a']", "[]", "[0:2]", " | [?name].image"))
	}
	return m.call(sub)
}

func (m maker) literal() string {
	return "`" + pick(m, "5", "0", "2.5", "true", "false", "[]", "{}", `["a","main"]`, `"x"`, `{"team":"blue"}`) + "`"
}

const object = "request.object."

func (m maker) path() string {
	label := pick(m, "team", "app", "size", `"a/b"`)
	return pick(m,
		object+"metadata.name", object+"metadata.labels."+label, object+"metadata.labels."+label, object+"metadata.annotations."+label, object+"metadata.labels",
		object+"spec.priority", object+"spec.hostNetwork", object+"spec.nodeName", object+"spec.containers[0].image", object+"spec.containers[1].name",
		object+"spec.containers[0].resources.limits.memory", object+"spec.initContainers[0].image", object+"spec.nodeSelector.disk", "request.operation", "request.namespace",
		object+"spec.containers[0].ports[0].containerPort", object+"spec.containers", object+"spec.terminationGracePeriodSeconds", object+"kind")
}

func (m maker) list(depth int) string {
	condition := pick(m, "name == 'main'", "image", "!image", "ports", "contains(image, ':')", "starts_with(name, 'a')", "image != 'b' && name", "resources.limits.memory == '2Gi'",
		"ports[0].containerPort > `50`", "env[?name == 'a']", "name == '"+pick(m, words...)+"'", "length(name) > `1`", "to_upper(name) == 'A'")
	of := object + "spec." + pick(m, "containers", "containers", "initContainers")
	return of + pick(m,
		"[]", "[].name", "[].image", "[*].image", "[?"+condition+"]", "[?"+condition+"].name", "[?"+condition+"].image", "[].ports[].containerPort", "[].ports[]", "[].env[?value].name[]",
		"[].{n: name, i: image}", "[].[name, image][]", "[].to_upper(name)", "[].image.to_upper(@)", "[].resources.limits.memory", "[].args[]", "[].length(name)", "[].[image || 'none'][]", "[?"+condition+"] | length(@)")
}

func (m maker) call(sub func() string) string {
	text := func() string { return pick(m, sub(), m.text()) }
	switch m.IntN(12) {
	case 0:
		return fmt.Sprintf("%s(%s)", pick(m, "to_upper", "to_lower", "length", "keys", "values", "to_string", "type", "to_number", "to_boolean", "abs", "base64_encode", "sha256", "to_array", "reverse"), text())
	case 1:
		return fmt.Sprintf("%s(%s, %s)", pick(m, "starts_with", "ends_with", "contains", "split", "trim_prefix", "equal_fold", "compare"), text(), text())
	case 2:
		return fmt.Sprintf("contains(%s, %s)", m.list(1), text())
	case 3:
		return fmt.Sprintf("join(%s, %s)", m.text(), m.list(1))
	case 4:
		return fmt.Sprintf("replace_all(%s, %s, %s)", sub(), m.text(), m.text())
	case 5:
		return fmt.Sprintf("not_null(%s, %s)", sub(), text())
	case 6:
		return fmt.Sprintf("%s(%s, %s)", pick(m, "add", "subtract", "multiply", "divide", "modulo"), sub(), pick(m, sub(), "`2`", "`3`"))
	case 7:
		return fmt.Sprintf("%s(%s)", pick(m, "sort", "max", "min", "sum", "avg", "length", "reverse"), m.list(1))
	case 8:
		return fmt.Sprintf("%s(%s, %s)", pick(m, "regex_match", "pattern_match"), pick(m, "'^a'", "'*e*'", "'w.b'", "'[0-9]+'", "'?*'"), sub())
	case 9:
		return fmt.Sprintf("merge(%s, %s)", pick(m, object+"metadata.labels", "`{\"a\":\"b\"}`"), pick(m, object+"spec.nodeSelector", object+"metadata.annotations", "{team: "+sub()+"}"))
	case 10:
		return fmt.Sprintf("lookup(%s, %s)", object+"metadata.labels", text())
	}
	return fmt.Sprintf("truncate(%s, `%d`)", sub(), m.IntN(4))
}

// pod is a Pod that a server may have.
func (m maker) pod() map[string]any {
	metadata := map[string]any{"name": pick(m, "web-1", "a", "5", "main"), "namespace": "shop"}
	if m.IntN(8) == 0 {
		delete(metadata, "name")
	}
	for _, field := range []string{"labels", "annotations"} {
		if m.IntN(4) > 0 {
			metadata[field] = m.texts("team", "app", "size", "a/b")
		}
	}
	spec := map[string]any{"containers": m.containers()}
	m.maybe(spec, "initContainers", func() any { return m.containers() })
	m.maybe(spec, "priority", func() any { return pick[any](m, int64(0), int64(5), int64(-3), int64(100)) })
	m.maybe(spec, "terminationGracePeriodSeconds", func() any { return int64(m.IntN(60)) })
	m.maybe(spec, "hostNetwork", func() any { return m.IntN(2) == 0 })
	m.maybe(spec, "nodeName", func() any { return pick(m, words...) })
	m.maybe(spec, "nodeSelector", func() any { return m.texts("disk", "team") })
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
}

func (m maker) maybe(fields map[string]any, name string, value func() any) {
	if m.IntN(2) == 0 {
		fields[name] = value()
	}
}

func (m maker) texts(keys ...string) any {
	out := map[string]any{}
	for _, key := range keys {
		m.maybe(out, key, func() any { return pick(m, words...) })
	}
	return out
}

func (m maker) containers() any {
	names := []string{"a", "main", "b"}
	out := []any{}
	for i := range m.IntN(4) {
		c := map[string]any{"name": names[i]}
		m.maybe(c, "image", func() any { return pick(m, words...) })
		m.maybe(c, "args", func() any { return []any{pick(m, words...)} })
		m.maybe(c, "ports", func() any { return []any{map[string]any{"containerPort": int64(80 * m.IntN(3))}} })
		m.maybe(c, "resources", func() any { return map[string]any{"limits": map[string]any{"memory": pick(m, "2Gi", "100M", "1")}} })
		m.maybe(c, "env", func() any { return []any{map[string]any{"name": pick(m, "a", "b"), "value": pick(m, words...)}} })
		out = append(out, c)
	}
	return out
}

func (m maker) condition() map[string]any {
	key, value := any("{{ "+m.query(2)+" }}"), pick(m, conditionValues...)
	if m.IntN(6) == 0 {
		key = "a-{{ " + m.query(1) + " }}"
	}
	return map[string]any{"key": key, "operator": pick(m, operators...), "value": value}
}

// compareRandom compares random queries and preconditions of a seed on random Pods.
func compareRandom(t *testing.T, b *both, seed uint64) (translated bool) {
	m := maker{rand.New(rand.NewPCG(seed, 1))}
	b.objects = nil
	for range 12 {
		b.objects = append(b.objects, m.pod())
	}
	language := translate.Language(m.IntN(2))
	var err error
	if seed%2 == 0 {
		query := m.query(3)
		if strings.Contains(query, "[::") {
			return false
		}
		doc := any("{{ " + query + " }}")
		if m.IntN(4) == 0 {
			doc = map[string]any{"k-{{ request.operation }}": "a-{{ " + query + " }}-b", "l": []any{"x", doc}}
		}
		err = b.query(t, language, true, doc)
	} else {
		raw := map[string]any{"all": []any{m.condition()}, "any": []any{m.condition(), m.condition()}}
		if m.IntN(2) == 0 {
			delete(raw, pick(m, "any", "all"))
		}
		err = b.conditions(t, language, true, raw)
	}
	var refused *translate.UnsupportedError
	if err != nil && !errors.As(err, &refused) {
		t.Errorf("seed %d: %v", seed, err)
	}
	return err == nil
}

// TestRandom compares what is said in both languages, whatever it is.
func TestRandom(t *testing.T) {
	b := newBoth(t, nil)
	seeds := uint64(600)
	if wide {
		seeds = 8_000
	}
	translated := uint64(0)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if compareRandom(t, b, seed) {
				translated++
			}
		})
	}
	if translated < seeds/4 {
		t.Errorf("only %d of %d were translated", translated, seeds)
	}
}

func FuzzTranslate(f *testing.F) {
	b := newBoth(f, nil)
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { compareRandom(t, b, seed) })
}
