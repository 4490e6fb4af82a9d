package human

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strconv"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Variety is what a rule does to a field of several objects.
type Variety struct {
	Kind    engine.ChangeKind
	Path    string
	Rule    engine.RuleRef
	Example string // a value that the field gets, or had
	Objects int

	from string // a value that it replaces; empty if it replaces no value
	// replacesOthers is set if it replaces other values as well.
	replacesOthers bool
	values         map[uint64]bool
}

// Values returns the number of different values.
func (v *Variety) Values() int { return len(v.values) }

// field returns the path after its marker.
func (v *Variety) field() string { return fieldMarker(v.Kind) + " " + v.Path }

// Varieties collects what rules do to fields, in the order of arrival. Elements of a list count as one
// field.
type Varieties struct {
	all   []*Variety
	index map[varietyKey]*Variety
}

// varietyKey is what a Variety is counted by.
type varietyKey struct {
	kind               engine.ChangeKind
	path, policy, rule string
}

// Add counts the fields of an object.
func (v *Varieties) Add(fields []engine.FieldChange) {
	if v.index == nil {
		v.index = map[varietyKey]*Variety{}
	}
	met := map[*Variety]bool{}
	for i := range fields {
		if fields[i].Records() {
			continue
		}
		path, value := leaf(&fields[i])
		rule := fields[i].Rule()
		key := varietyKey{fields[i].Kind, engine.PathPattern(path), rule.Policy, rule.Rule}
		of := v.index[key]
		if of == nil {
			of = &Variety{
				Kind: key.kind, Path: key.path, Rule: rule, Example: shortValue(value), values: map[uint64]bool{},
			}
			v.index[key] = of
			v.all = append(v.all, of)
		}
		if fields[i].Kind == engine.Replaced {
			from := shortValue(fields[i].From)
			of.from = cmp.Or(of.from, from)
			of.replacesOthers = of.replacesOthers || of.from != from
		}
		of.values[hashOf(value)] = true
		if !met[of] {
			met[of] = true
			of.Objects++
		}
	}
}

var hashSeed = maphash.MakeSeed() //nolint:gochecknoglobals // it does not change

// hashOf returns the hash of a JSON value.
func hashOf(value any) uint64 {
	var sum uint64 // in any order
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			sum += maphash.Comparable(hashSeed, [...]any{name, hashOf(below)})
		}
	case []any:
		sum = 1 // not an empty map
		for i, item := range v {
			sum += maphash.Comparable(hashSeed, [...]any{i, hashOf(item)})
		}
	default:
		return maphash.Comparable(hashSeed, value)
	}
	return sum
}

// leaf returns the path and value of a field. Of a map with one field that is added or removed, it returns
// that field, so that a first label is added like a second one.
func leaf(f *engine.FieldChange) (fieldpath.Path, any) {
	path, value := f.Path, f.To
	switch f.Kind {
	case engine.Removed:
		value = f.From
	case engine.Replaced, engine.Moved:
		return path, value
	case engine.Added:
	}
	for {
		below, ok := value.(map[string]any)
		if !ok || len(below) != 1 {
			return path, value
		}
		for name := range below {
			path, value = append(slices.Clip(path), fieldpath.PathElement{FieldName: &name}), below[name]
		}
	}
}

// examples writes an example of each field with several values, or with all of each field, with the previous
// value.
func (v *Varieties) examples(b *page, all bool) {
	listed := 0
	for _, of := range v.all {
		n, text := len(of.values), "    "+of.field()+": "
		switch {
		case n < 2 && !all:
			continue
		case listed == changesListed:
			b.line(Plain, "    ...")
			return
		case all && of.replacesOthers:
			text += of.from + " and others -> "
		case all && of.from != "":
			text += of.from + " -> "
		}
		if text += of.Example; n > 1 {
			text += " and " + wording.PluralNumber(n-1, "other value")
		}
		b.line(Plain, text)
		listed++
	}
}

// Frequent returns the most frequent changes.
func (v *Varieties) Frequent(most int) []*Variety {
	all := slices.Clone(v.all)
	slices.SortFunc(all, func(a, b *Variety) int {
		return cmp.Or(cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.field(), b.field()),
			cmp.Compare(a.Rule.String(), b.Rule.String()))
	})
	return all[:min(len(all), most)]
}

// frequent lists the most frequent changes.
func (h *base) frequent(b *page) {
	all := h.often.Frequent(changesListed)
	if len(all) == 0 {
		return
	}
	if h.markdown {
		b.WriteString("\n")
	}
	b.WriteString("Most frequent changes:\n")
	var rows [][]string
	for _, of := range all {
		objects, values := strconv.Itoa(of.Objects), strconv.Itoa(of.Values())
		if h.markdown {
			rows = append(rows, []string{cell(of.field()), cell(of.Example), cell(of.Rule.String()), objects, values})
			continue
		}
		rows = append(rows, []string{
			cutMiddle(of.field(), cellPath), of.Example, cutMiddle(of.Rule.String(), cellRule), objects,
			values,
		})
	}
	if h.markdown {
		b.WriteString("\n")
		markdownTable(b, 3, append([][]string{{"FIELD", "EXAMPLE", "RULE", "OBJECTS", "VALUES"}}, rows...)) //nolint:mnd // the first three are strings
		return
	}
	b.table(append([][]string{{"FIELD", "EXAMPLE", "RULE", "OBJECTS", "VALUES"}}, rows...))
	b.WriteString("\n")
}
