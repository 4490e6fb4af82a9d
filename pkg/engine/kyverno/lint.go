package kyverno

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// kyvernoName is what messages call the engine in a cluster.
const kyvernoName = "Kyverno"

// Kyverno refuses a policy with a variable that matches none of these and names no context entry
// (pkg/validation/policy/validate.go, allowedVariables and below). They differ by background processing, and
// by the targets of a rule.
//
//nolint:gochecknoglobals // immutable tables
var (
	alwaysKnown     = regexp.MustCompile(`request\.|element|@|images|image\.|[a-z_0-9]+\([^{}]`)
	knownAtRequests = regexp.MustCompile(`serviceAccountName`)
	knownOfTargets  = regexp.MustCompile(`target\.`)
	requestFields   = []string{
		"object", "oldObject", "operation", "userInfo", "namespace", "name", "uid", "kind", "resource",
		"subResource",
		"requestKind", "requestResource", "requestSubResource", "dryRun", "options", "roles", "clusterRoles",
	}
	// A name before a parenthesis is a function.
	requestField  = regexp.MustCompile(`\brequest\.(\w+)(?:[^\w(]|$)`)
	metadataField = regexp.MustCompile(`\b((?:request\.object|request\.oldObject|target)\.metadata\.(\w+))(?:[^\w(]|$)`)
	elementName   = regexp.MustCompile(`^element(Index)?\d*$`)
	// The user is not known in the background (pkg/validation/policy/background.go).
	userVariable = regexp.MustCompile(`(?:^|[^.])\b((?:serviceAccountName|serviceAccountNamespace|request\.userInfo|request\.roles|request\.clusterRoles)\b)`)
)

// texts looks for mistakes in the strings of one rule.
type texts struct {
	*ruleCompiler
	declared []string // names with values, where Kyverno looks for them
	nested   []string // names with values only in a nested foreach
	targets  bool     // the rule has targets
}

// lintTexts warns of variables and anchors that are plain text, and of variables without a value.
func (c *ruleCompiler) lintTexts(f *policydecode.Fields) {
	mutate := mapping(f.Values["mutate"])
	t := &texts{c, namesIn(f.Values), nil, mutate["targets"] != nil}
	for _, list := range []any{mutate["foreach"], mutate["targets"]} {
		for _, one := range sequence(list) {
			t.declared = append(t.declared, namesIn(mapping(one))...)
		}
	}
	variables.Contains(f.Values, func(value any) bool {
		t.nested = append(t.nested, namesIn(mapping(value))...)
		return false
	})
	t.nested = slices.DeleteFunc(t.nested, func(name string) bool { return slices.Contains(t.declared, name) })
	for _, key := range []string{"context", "preconditions", "mutate"} {
		t.walk(f.At(key), false)
	}
	for _, key := range []string{"match", "exclude"} {
		if variables.Mentions(f.Values[key], "{{") {
			f.At(key).Refuse(kyvernoName, "has variables, which are never replaced there")
		}
	}
}

// namesIn lists the names of the context entries of a rule, or of a part of it.
func namesIn(part map[string]any) []string {
	var names []string
	for _, entry := range sequence(part["context"]) {
		if name := stringOrEmpty(mapping(entry)["name"]); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// walk checks all keys and strings below a node. merged is set for parts that are merged into an object.
func (t *texts) walk(n policydecode.Node, merged bool) {
	switch v := n.Value.(type) {
	case string:
		t.lintText(n, v, merged)
	case []any:
		for _, item := range n.List() {
			t.walk(item, merged)
		}
	case map[string]any:
		f := n.Fields()
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := f.At(key)
			switch {
			case merged:
				lintAnchor(at, key)
			case key == "patchesJson6902":
				at.Value = operationsIn(at.Value)
			case key == "path":
				if slip := policydecode.PointerSlip(stringOrEmpty(at.Value)); slip != "" && !variables.Used(at.Value) {
					at.Lint("%s", slip)
				}
			}
			t.lintText(at, key, merged)
			t.walk(at, merged || key == "patchStrategicMerge" || key == "overlay")
		}
	}
}

// operationsIn returns the list of operations in a JSON patch, if it is readable; else the string itself.
func operationsIn(value any) any {
	var list []any
	if source, isText := value.(string); isText && yaml.Unmarshal([]byte(source), &list) == nil {
		return list
	}
	return value
}

// lintAnchor warns of an anchor with a weak value, and of a key in parentheses that is not an anchor and so a
// plain name.
func lintAnchor(n policydecode.Node, key string) {
	anchor, name := pattern.ParseKey(key)
	if anchor != pattern.None {
		lintPattern(n, anchor, name)
		return
	}
	if !strings.ContainsAny(key, "()") || variables.Used(key) {
		return
	}
	text := strings.TrimSpace(key)
	name = strings.TrimLeft(strings.TrimRight(text, "()"), "+=^X<(")
	modifier, _, opened := strings.Cut(text, "(")
	if meant := modifier + "(" + name + ")"; opened && meant != text {
		if anchor, _ := pattern.ParseKey(meant); anchor != pattern.None {
			n.Lint("%q is the name of a field here, since no anchor is written so; did you mean %q?", key, meant)
			return
		}
	}
	n.Lint("%q is the name of a field here, since no anchor is written so; the anchors are (x), <(x), +(x), =(x), X(x) and ^(x)", key)
}

// notPattern matches operators of other languages at the beginning of a pattern.
var notPattern = regexp.MustCompile(`^\s*(=~|!~|==|!=|=|\^)`)

// lintPattern warns of an anchor's value that is not a valid pattern, or is probably meant otherwise.
func lintPattern(n policydecode.Node, anchor pattern.Anchor, name string) {
	if n.Value == nil {
		switch anchor {
		case pattern.Add:
			n.Lint("+(%s) has no value, so nothing is added", name)
		case pattern.Condition, pattern.Global:
			n.Lint(`%s has no value, so it holds only where %s is absent or empty; "*" stands for any value`, n.Path[strings.LastIndexByte(n.Path, '.')+1:], name)
		}
		return
	}
	written, isText := n.Value.(string)
	if found := notPattern.FindStringSubmatch(written); isText && found != nil && anchor != pattern.Add &&
		!variables.Used(written) {
		n.Lint("%q is compared as it is written: a pattern knows the wildcards * and ?, and !, >, >=, <, <=, | and & before a value, but no %s", shortened(written), found[1])
	}
}

func (t *texts) lintText(n policydecode.Node, text string, merged bool) {
	if !strings.Contains(text, "{") {
		return
	}
	if engine.LooksLikeTemplate(text) {
		if !t.template {
			n.Lint("%s", engine.TemplateHint)
		}
		t.template = true
		return
	}
	expressions, unclosed := variables.Inspect(text)
	if unclosed != "" {
		n.Lint("%q is plain text: a variable stands between {{ and }}", shortened(unclosed))
	}
	for _, x := range expressions {
		if x.String() == "@" {
			_, place, _ := strings.Cut(n.Path, "patchStrategicMerge")
			switch {
			case !merged:
				n.Lint("{{@}} is the value of the field in whose place it stands, so it has a value only in patchStrategicMerge")
			case strings.Contains(place, "["):
				n.Lint("{{@}} in a list reads the object's element of the same index, whichever element is changed; write a foreach, and element")
			}
			continue
		}
		t.variable(n, x.String(), x.Roots())
	}
}

func shortened(text string) string {
	return engine.Shorten(strings.Join(strings.Fields(text), " "), 60)
}

// variable warns of a variable without a value, or reports that Kyverno refuses it.
func (t *texts) variable(n policydecode.Node, text string, roots []string) {
	if strings.HasPrefix(text, "element") && !strings.Contains(n.Path, ".foreach[") {
		n.Refuse(kyvernoName, "the variable %s is outside of foreach", text)
		return
	}
	for _, name := range roots {
		if slices.Contains(t.nested, name) && t.refused(text) {
			n.Refuse(kyvernoName, "the variable %s is declared in a nested foreach, where Kyverno does not look for it", name)
			return
		}
		if t.declares(name) {
			continue
		}
		if t.refused(text) {
			n.Refuse(kyvernoName, "nothing declares the variable %s%s", name, t.meant(name))
		} else {
			n.Lint("nothing declares the variable %s%s", name, t.meant(name))
		}
		return
	}
	if asked := userVariable.FindStringSubmatch(text); asked != nil && t.background && !t.ruleCompiler.targets {
		n.Refuse(kyvernoName, "the variable %s is not available in background mode: set spec.background: false", asked[1])
	}
	for _, field := range metadataField.FindAllStringSubmatch(text, -1) {
		if slip := policydecode.MetadataSlip(field[2]); slip != "" {
			n.Lint("%s: %s", field[1], slip)
		}
	}
	for _, field := range requestField.FindAllStringSubmatch(text, -1) {
		if slices.Contains(requestFields, field[1]) {
			continue
		}
		if meant := engine.Nearest(field[1], slices.Values(requestFields)); meant != "" {
			n.Lint("a request has no field %s; did you mean request.%s?", field[1], meant)
		}
	}
}

func (t *texts) meant(name string) string {
	if slices.Contains([]string{"null", "true", "false"}, name) {
		return fmt.Sprintf(", so it is the name of a field: the literal stands in backticks, `%s`", name)
	}
	others := []string{
		"request", "images", "element", "elementIndex", "serviceAccountName",
		"serviceAccountNamespace",
	}
	if t.targets {
		others = append(others, "target")
	}
	if meant := engine.Nearest(name,
		slices.Values(slices.Concat(others, t.declared, t.nested, t.given))); meant != "" {
		return fmt.Sprintf("; did you mean %s?", meant)
	}
	return ", so it has no value; an entry of context gives it one"
}

func (t *texts) declares(name string) bool {
	switch name {
	case "": // the identifier "" in x || "", where '' is meant: it is null, which works too
		return true
	case "request", "images", "image", "serviceAccountName", "serviceAccountNamespace":
		return true
	case "target":
		return t.targets
	}
	return slices.Contains(t.declared, name) || slices.Contains(t.nested, name) ||
		slices.Contains(t.given, name) || elementName.MatchString(name)
}

func beginsWithOne(text string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(text, name) })
}

func (t *texts) refused(text string) bool {
	text = strings.ReplaceAll(text, `"`, "")
	return !alwaysKnown.MatchString(text) &&
		(t.background || !knownAtRequests.MatchString(text)) &&
		(!t.targets || !knownOfTargets.MatchString(text)) &&
		!beginsWithOne(text, t.declared) && !beginsWithOne(text, t.given)
}

// lintExclude warns of a rule that excludes everything that it matches.
func (r *rule) lintExclude(n policydecode.Node) {
	switch all, refused := r.match.Excluded(r.exclude); {
	case refused:
		n.Refuse(kyvernoName, "the rule is matching an empty set: match and exclude have the same filter")
	case all:
		n.Lint("excludes all that the rule matches, so the rule never applies")
	}
}
