// Package wording has names and counts for people, cells of tables, and words for a shell. Its strings are
// not masked and, except cells and words, not escaped: the printers do that.
package wording

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Rule returns the name of a rule and how it came to apply: "kyverno team-labels/add via b".
func Rule(r engine.RuleRef) string {
	var b strings.Builder
	if r.Dialect != "" {
		b.WriteString(r.Dialect + " ")
	}
	b.WriteString(r.String())
	if r.Via != "" {
		b.WriteString(" via " + r.Via)
	}
	return b.String()
}

// MergedRule returns the name of a rule as evaluation.MergeParameters has it: "p via b (20 parameters)".
func MergedRule(r evaluation.RuleSummary) string {
	if r.Parameters == 0 {
		return Rule(r.Rule)
	}
	return Rule(r.Rule) + " (" + Plural(r.Parameters, "parameter") + ")"
}

// Trigger names the trigger of a step, and the rules that change it in the same run: "ConfigMap shop/b, as
// changed by labels/add".
func Trigger(s *engine.Step) string {
	if len(s.TriggerChangedBy) == 0 {
		return s.Trigger().String()
	}
	return s.Trigger().String() + ", as changed by " + engine.Few(s.TriggerChangedBy)
}

// Policy returns the name of the policy of a rule: "kyverno team-labels".
func Policy(r engine.RuleRef) string {
	return Rule(engine.RuleRef{Dialect: r.Dialect, Policy: r.Policy})
}

// Kind returns the kind of an object with its group: "apps/Deployment".
func Kind(k engine.ObjectKey) string {
	if k.Of != (engine.Maker{}) {
		return Kind(engine.ObjectKey{GroupKind: k.GroupKind}) + " of " + Kind(k.Place())
	}
	return strings.TrimSuffix(engine.ObjectKey{GroupKind: k.GroupKind, Subresource: k.Subresource}.String(), " ")
}

// ResourceName returns an object's name as `kubectl -o name` prints it, without the namespace:
// "deployment.apps/web". An object that would be created for it is "pod of deployment.apps/web".
func ResourceName(k engine.ObjectKey) string {
	if k.Of != (engine.Maker{}) {
		return strings.ToLower(k.Kind) + " of " + ResourceName(k.Place())
	}
	kind := strings.ToLower(k.Kind)
	if k.Group != "" {
		kind += "." + k.Group
	}
	return kind + "/" + k.Name
}

// Counts returns the last sentence of the formats for people: how many objects were evaluated and would
// change, and the exceptions.
func Counts(s evaluation.Summary) string {
	var b strings.Builder
	if s.Objects == 0 {
		b.WriteString("No objects evaluated.")
	} else {
		fmt.Fprintf(&b, "%s evaluated: %s would change", PluralNumber(s.Objects, "object"), Number(s.Changed))
		if s.Changed > 0 {
			fmt.Fprintf(&b, " (%s)", PluralNumber(s.Fields-s.Records, "field")+records(s.Records))
		}
		fmt.Fprintf(&b, ", %s would not.", Number(s.Objects-s.Changed))
	}
	if s.Created > 0 {
		fmt.Fprintf(&b, " As if created, %s would be different.", PluralNumber(s.Created, "object"))
	}
	if e := s.Expanded; e != nil {
		fmt.Fprintf(&b, " Of %s to be created, %s would be different.", PluralNumber(e.Objects, "object"), Number(e.Changed))
	}
	b.WriteString(canary(s.Canary))
	var rest []string
	if s.Ignored > 0 {
		rest = append(rest, PluralNumber(s.Ignored, "object")+" ignored")
	}
	if s.Refused > 0 {
		rest = append(rest, PluralNumber(s.Refused, "object")+" would be refused by the server")
	}
	if s.Incomplete > 0 {
		rest = append(rest, PluralNumber(s.Incomplete, "object")+" incomplete")
	}
	for _, o := range []engine.Outcome{engine.Skipped, engine.Denied, engine.Failed, engine.Unsupported} {
		if n := s.Outcomes(o); n > 0 {
			rest = append(rest, fmt.Sprintf("%s %s", PluralNumber(n, "rule result"), o))
		}
	}
	if s.Warnings > 0 {
		rest = append(rest, PluralNumber(s.Warnings, "warning"))
	}
	if len(rest) > 0 {
		b.WriteString(" " + strings.Join(rest, ", ") + ".")
	}
	return b.String()
}

// Fields counts changed fields, and separately the annotations that record them: "3 fields and 1
// annotation".
func Fields(fields []engine.FieldChange) string {
	counted, noted := engine.SplitRecords(fields)
	return Plural(len(counted), "field") + records(len(noted))
}

func records(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " and 1 annotation"
	}
	return " and " + Number(n) + " annotations"
}

// canary says how a run was restricted to some objects.
func canary(c *evaluation.Canary) string {
	text := ""
	if c != nil && c.Percent > 0 {
		text += fmt.Sprintf(" Canary: %d %% of the objects, %d left out.", c.Percent, c.LeftOut)
	}
	if c != nil && c.More {
		text += fmt.Sprintf(" Canary: ended after %s, and more objects would change.", Plural(c.MaxObjects, "changed object"))
	}
	return text
}

// Restarts returns a sentence on the Pods that a run would restart, or "".
func Restarts(r evaluation.Restarts) string {
	var parts []string
	if r.Pods > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s would restart", PluralNumber(r.Pods, "Pod"),
			PluralNumber(r.Workloads, "workload")))
	}
	if r.ManagedPods > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s would restart with --include-managed", PluralNumber(r.ManagedPods, "Pod"), PluralNumber(r.ManagedWorkloads, "workload")))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + "."
}

// SetBack returns a sentence on the changed objects that kubectl apply will set back, or "".
func SetBack(objects int) string {
	if objects == 0 {
		return ""
	}
	return "kubectl apply will set back changes of " + Plural(objects, "object") + ": change the manifests too."
}

// Source says what manages objects, and where they are described.
func Source(by, source string) string { return by + ": " + source }

// Brief returns the message of an error without what is particular to one object, if the error can tell, so
// that many objects share it. It is "no reason given" for nil.
func Brief(err error) string {
	var b interface{ Brief() string }
	switch {
	case err == nil:
		return "no reason given"
	case errors.As(err, &b):
		return b.Brief()
	}
	return err.Error()
}

// Number formats a number that is not negative with commas between thousands: "10,000".
func Number(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", Number(n/1000), n%1000)
}

// Cell returns a string as a cell of a table: one escaped line, or "-" if empty.
func Cell(text string) string {
	return cmp.Or(redact.EscapeLine(strings.Join(strings.Fields(text), " ")), "-")
}

// Table aligns the columns of rows, with each string escaped and on one line.
func Table(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0) // spaces between columns
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, text := range row {
			cells[i] = redact.EscapeLine(text)
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	_ = w.Flush() // a Builder takes everything
	return b.String()
}

// manyNamespaces is the maximum number of namespaces that are listed by name.
const manyNamespaces = 10

// Namespaces describes the namespaces of a run: "namespace shop", "namespaces bank, shop", "12 namespaces",
// or without names "all namespaces".
func Namespaces(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "all namespaces"
	case n == 1:
		return "namespace " + names[0]
	case n > manyNamespaces:
		return PluralNumber(n, "namespace")
	}
	return "namespaces " + strings.Join(names, ", ")
}

// Plural returns "1 object" or "2 objects", "1 policy" or "2 policies", for a regular noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, plural(noun))
}

// PluralNumber is Plural with commas between thousands: "10,000 objects".
func PluralNumber(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Number(n) + " " + plural(noun)
}

func plural(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return stem + "ies"
	}
	return noun + "s"
}

// plainBytes have no special meaning to any shell.
const plainBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@+:,./-"

// ShellQuote makes a word safe to paste into a POSIX shell. Characters that a terminal cannot show are
// passed to printf, so that the shell gets them unchanged; line breaks at the end are lost.
func ShellQuote(word string) string {
	switch {
	case word != redact.EscapeLine(word):
		return printed(word)
	case word != "" && word[0] != '=' && strings.Trim(word, plainBytes+"%=") == "":
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// printed returns a word that printf puts together from bytes in octal.
func printed(word string) string {
	var b strings.Builder
	for i := range len(word) {
		if c := word[i]; strings.IndexByte(plainBytes, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\%03o`, c)
		}
	}
	return `"$(printf '` + b.String() + `')"`
}

// Reason is why something was not done, and to which objects.
type Reason struct {
	Text  string // that of the first object; without its name where there are others
	Count int
	First []engine.ObjectKey // FewNamed of them
	Lines []string           // what is said of each of them, for who adds it
}

// FewNamed is the maximum number of objects that a Reason names.
const FewNamed = 3

// Add counts an object.
func (r *Reason) Add(key engine.ObjectKey) {
	if r.Count++; r.Count <= FewNamed {
		r.First = append(r.First, key)
	}
}

// Objects returns the number of objects and the names of the first: "2 objects: ConfigMap shop/a, ConfigMap
// shop/b".
func (r *Reason) Objects() string { return Plural(r.Count, "object") + ": " + r.Names() }

// Many reports whether there are more objects than Names returns.
func (r *Reason) Many() bool { return r.Count > FewNamed }

// Names returns the names of the first few objects, and how many more there are.
func (r *Reason) Names() string {
	return engine.FewOf(r.First, r.Count)
}

// Reasons groups objects by why something was not done to them: reasons are alike if they differ only in the
// name of the object. The zero value is empty.
type Reasons struct {
	all   []*Reason
	known map[string]*Reason // by text without the name
}

// Add adds an object, and returns its reason.
func (r *Reasons) Add(key engine.ObjectKey, text string) *Reason {
	alike := WithoutName(text, key)
	reason := r.known[alike]
	if reason == nil {
		if r.known == nil {
			r.known = map[string]*Reason{}
		}
		reason = &Reason{Text: text}
		r.known[alike] = reason
		r.all = append(r.all, reason)
	}
	if reason.Add(key); reason.Count > 1 {
		reason.Text = alike
	}
	return reason
}

// All returns the reasons in the order in which they came up.
func (r *Reasons) All() []*Reason { return r.all }

// WithoutName replaces the name of an object in a string by "...", where it is quoted or follows its
// namespace, its kind or a slash, and likewise its namespace, also with other objects. A name by itself may
// be another word.
func WithoutName(text string, key engine.ObjectKey) string {
	if name := key.Name; name != "" && strings.Contains(text, name) {
		names := []string{`"` + name + `"`, `"..."`, `'` + name + `'`, `'...'`}
		if key.Namespace != "" {
			names = append(names, `"`+key.Namespace+"/"+name+`"`, `"..."`)
		}
		text = strings.NewReplacer(names...).Replace(text)
		if key.Namespace != "" {
			text = replaceWord(text, key.Namespace+"/"+name, "...")
		}
		text = replaceWord(text, "/"+name, "/...")
		text = replaceWord(text, key.Kind+" "+name, key.Kind+" ...")
	}
	if namespace := key.Namespace; namespace != "" && strings.Contains(text, namespace) {
		text = strings.ReplaceAll(text, `"`+namespace+`"`, `"..."`)
		for _, before := range []string{" ", "namespaces/", `"`} {
			text = strings.ReplaceAll(text, before+namespace+"/", before+".../")
		}
		text = replaceWord(text, "namespace "+namespace, "namespace ...")
	}
	return text
}

// replaceWord replaces a word that is not a part of a longer name.
func replaceWord(text, word, by string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, word)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if inName(word[0]) && before != "" && inName(before[len(before)-1]) || after != "" && inName(after[0]) {
			b.WriteString(word)
		} else {
			b.WriteString(by)
		}
		text = after
	}
}

func inName(c byte) bool {
	return c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
