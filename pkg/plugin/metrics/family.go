package metrics

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// family is one metric and its samples by their labels.
type family struct {
	name, help string
	labels     []string
	counts     map[string]int // by the labels as they are written
}

func newFamily(name, help string, labels []string) *family {
	return &family{name: name, help: help, labels: slices.Clone(labels), counts: map[string]int{}}
}

// add counts one more with these labels. Labels with empty values are left out,
// which is the same to a reader.
func (f *family) add(values []string) {
	f.counts[labelsText(f.labels, values)]++
}

// writeTo writes a metric that has samples.
func (f *family) writeTo(b *strings.Builder) {
	if len(f.counts) == 0 {
		return
	}
	b.WriteString("# TYPE " + f.name + " gauge\n")
	b.WriteString("# HELP " + f.name + " " + f.help + "\n")
	for _, labels := range slices.Sorted(maps.Keys(f.counts)) {
		b.WriteString(f.name + labels + " " + strconv.Itoa(f.counts[labels]) + "\n")
	}
}

func labelsText(names, values []string) string {
	var parts []string
	for i, name := range names {
		if values[i] != "" {
			parts = append(parts, name+`="`+escape(values[i])+`"`)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// escape writes a label's value; what is no UTF-8 cannot be said in OpenMetrics. It
// has an escape for line breaks and for no other control character: those are
// replaced by their codes, since names in a cluster are anybody's.
func escape(value string) string {
	value = redact.Escape(strings.ToValidUTF8(value, "\uFFFD"), "\n")
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value)
}
