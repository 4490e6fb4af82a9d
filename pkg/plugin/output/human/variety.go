package human

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strconv"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// variety is what a rule does to a field of several objects.
type variety struct {
	field, rule string
	example     string // a value that it comes to have, or had
	from        string // a value that it replaces; empty where it replaces none
	// replacesOthers reports that it replaces other values as well.
	replacesOthers bool
	values         map[uint64]bool
	objects        int
}

// varieties are those of fields, in the order in which they were met. Elements of lists count as one field.
type varieties struct {
	all   []*variety
	index map[string]*variety
}

// add counts the fields of an object.
func (v *varieties) add(fields []engine.FieldChange) {
	if v.index == nil {
		v.index = map[string]*variety{}
	}
	met := map[*variety]bool{}
	for i := range fields {
		if fields[i].Records() {
			continue
		}
		path, value := leaf(&fields[i])
		field, rule := fieldMarker(fields[i].Kind)+" "+engine.PathPattern(path), fields[i].Rule.String()
		of := v.index[field+"\t"+rule]
		if of == nil {
			of = &variety{field: field, rule: rule, example: short(value), values: map[uint64]bool{}}
			v.index[field+"\t"+rule] = of
			v.all = append(v.all, of)
		}
		if fields[i].Kind == engine.Replaced {
			from := short(fields[i].From)
			of.from = cmp.Or(of.from, from)
			of.replacesOthers = of.replacesOthers || of.from != from
		}
		if text, err := structured.MarshalLine(value); err == nil { // an error would be one of the diff as well
			of.values[maphash.String(hashSeed, text)] = true
		}
		if !met[of] {
			met[of] = true
			of.objects++
		}
	}
}

var hashSeed = maphash.MakeSeed() //nolint:gochecknoglobals // it does not change

// leaf is the path and value of a field: that of the only field below a map which comes or goes with it, so
// that a first label is added like a second one.
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

// examples writes an example of the fields that have several values, or of all: the values before it too.
func (v *varieties) examples(b *page, all bool) {
	listed := 0
	for _, of := range v.all {
		n, text := len(of.values), "    "+of.field+": "
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
		if text += of.example; n > 1 {
			text += " and " + wording.PluralNumber(n-1, "other value")
		}
		b.line(Plain, text)
		listed++
	}
}

// frequent lists the changes that most objects have.
func (h *base) frequent(b *page) {
	if len(h.often.all) == 0 {
		return
	}
	slices.SortFunc(h.often.all, func(a, b *variety) int {
		return cmp.Or(cmp.Compare(b.objects, a.objects), cmp.Compare(a.field, b.field), cmp.Compare(a.rule, b.rule))
	})
	if h.markdown {
		b.WriteString("\n")
	}
	b.WriteString("Most frequent changes:\n")
	var rows [][]string
	for _, of := range h.often.all[:min(len(h.often.all), changesListed)] {
		objects, values := strconv.Itoa(of.objects), strconv.Itoa(len(of.values))
		if h.markdown {
			rows = append(rows, []string{cell(of.field), cell(of.example), cell(of.rule), objects, values})
			continue
		}
		rows = append(rows, []string{
			middle(of.field, cellPath), of.example, middle(of.rule, cellRule), objects,
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
