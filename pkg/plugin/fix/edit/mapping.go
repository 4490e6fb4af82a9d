package edit

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// entry is a key with its value, or an element of a sequence.
type entry struct {
	key, value *yamlv3.Node
	start, end int // from the key, the dash, or the element in brackets, to the end of the value
	after      int // the offset after the colon or the dash
	kept       bool
}

// addition is a new entry.
type addition struct {
	key   string // of a mapping
	value any
	at    int // index of the entry after it
}

// mapping changes a mapping.
func (e *editor) mapping(n *yamlv3.Node, before, after map[string]any, s slot) {
	same := diff.Same(before, after)
	var entries []entry
	var merges []*yamlv3.Node
	own := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			merges = append(merges, value)
			entries = append(entries, entry{key: key, value: value, kept: true})
			continue
		}
		was, known := before[key.Value]
		if !known || key.Kind != yamlv3.ScalarNode {
			if same {
				continue
			}
			e.refuse(key, "the key %s cannot be edited: put it in quotes", key.Value)
		}
		own[key.Value] = true
		now, kept := after[key.Value]
		entries = append(entries, entry{key: key, value: value, kept: kept})
		if kept {
			e.value(value, was, now, e.slotOf(n, key))
		}
	}
	merged := e.merged(merges, before)
	var added []addition
	for _, name := range slices.Sorted(maps.Keys(after)) {
		was, implied := before[name]
		if len(merges) > 0 {
			was, implied = merged[name]
		}
		if !own[name] && !(implied && diff.Same(was, after[name])) {
			added = append(added, addition{key: name, value: after[name], at: len(entries)})
		}
	}
	for name := range merged {
		if _, wanted := after[name]; !wanted {
			e.refuse(merges[0], "%s comes from a merge key (<<), and is to be removed: write the fields out", name)
		}
	}
	e.change(n, entries, added, after, s)
}

// merged returns the fields of merge keys ("<<"). Values that were not visited have not changed.
func (e *editor) merged(merges []*yamlv3.Node, before map[string]any) map[string]any {
	out := map[string]any{}
	var add func(source *yamlv3.Node)
	add = func(source *yamlv3.Node) {
		switch now, visited := e.anchors[source.Alias]; {
		case source.Kind == yamlv3.SequenceNode:
			for _, one := range source.Content {
				add(one)
			}
		case source.Kind == yamlv3.AliasNode && visited:
			fields, _ := now.(map[string]any)
			for name, v := range fields {
				if _, has := out[name]; !has {
					out[name] = v
				}
			}
		default:
			for source.Kind == yamlv3.AliasNode {
				source = source.Alias
			}
			for i := 0; i+1 < len(source.Content); i += 2 {
				if name := source.Content[i].Value; source.Content[i].ShortTag() == "!!merge" {
					add(source.Content[i+1])
				} else if _, has := out[name]; !has {
					out[name] = before[name]
				}
			}
		}
	}
	for _, m := range merges {
		add(m)
	}
	return out
}

// slotOf returns the context of the value of a key.
func (e *editor) slotOf(n, key *yamlv3.Node) slot {
	if isFlow(n) {
		return slot{flow: true, after: -1}
	}
	return slot{indent: key.Column - 1, after: e.colon(key)}
}

// colon returns the offset after the colon of a key.
func (e *editor) colon(key *yamlv3.Node) int {
	at := e.skip(e.end(key))
	if e.text[at] != ':' {
		e.refuse(key, "the colon of a key is not found")
	}
	return at + 1
}

// sequence changes a list.
func (e *editor) sequence(n *yamlv3.Node, before, after []any, s slot) {
	entries := make([]entry, len(before))
	at := 0
	if !isFlow(n) {
		at = e.content(n)
	}
	for i, item := range n.Content {
		if entries[i] = (entry{value: item}); isFlow(n) {
			continue
		}
		at = e.skip(at)
		if e.text[at] != '-' {
			e.refuse(item, "the dash of an element is not found")
		}
		entries[i].start, entries[i].after = at, at+1
		at = max(e.end(item), at+1)
	}
	places := align(before, after)
	var added []addition
	next := 0 // in before
	for j, v := range after {
		i := places[j]
		if i < 0 {
			added = append(added, addition{value: v, at: next})
			continue
		}
		next, entries[i].kept = i+1, true
		place := slot{flow: true, after: -1}
		if !isFlow(n) {
			place = slot{indent: e.column(entries[i].start), after: entries[i].after}
		}
		e.value(entries[i].value, before[i], v, place)
	}
	for _, a := range added {
		for i := range entries {
			if x := &entries[i]; !x.kept && diff.Same(before[i], a.value) &&
				e.comments(e.start(x.value), e.lineEnd(e.end(x.value))) {
				e.refuse(x.value, "it is to be moved, and its comments would be lost")
			}
		}
	}
	e.change(n, entries, added, after, s)
}

// column returns the column of an offset, in characters.
func (e *editor) column(at int) int { return len([]rune(string(e.text[e.lineStart(at):at]))) }

// change adds entries to a collection, and removes those that are not kept.
func (e *editor) change(n *yamlv3.Node, entries []entry, added []addition, after any, s slot) {
	removed, kept := false, false
	for i := range entries {
		removed, kept = removed || !entries[i].kept, kept || entries[i].kept
	}
	switch {
	case !removed && len(added) == 0:
		return
	case !kept:
		e.replace(n, after, s)
		return
	}
	for i := range entries {
		if x := &entries[i]; x.key != nil {
			x.start = e.start(x.key)
		} else if isFlow(n) {
			x.start = e.start(x.value)
		}
		entries[i].end = max(e.end(entries[i].value), entries[i].after)
		if entries[i].key != nil {
			entries[i].end = max(entries[i].end, e.end(entries[i].key))
		}
	}
	if isFlow(n) {
		e.changeFlow(n, entries, added)
		return
	}
	if first := entries[0].start; n.Kind == yamlv3.MappingNode &&
		bytes.HasSuffix(bytes.TrimSpace(e.text[e.lineStart(first):first]), []byte("?")) {
		e.refuse(n, "a key behind a question mark cannot be edited")
	}
	e.removeLines(entries)
	e.addLines(n, entries, added, s)
}

// removeLines removes the lines of entries. Comments above them stay.
func (e *editor) removeLines(entries []entry) {
	i := 0
	if !entries[0].kept && !e.alone(entries[0].start) { // after a dash
		for !entries[i].kept {
			i++
		}
		last, next := entries[i-1].end, entries[i].start
		if e.blank(e.nextLine(last), e.lineStart(next)) {
			e.splice(entries[0].start, next, "")
		} else {
			e.splice(entries[0].start, e.lineEnd(last), "")
		}
	}
	for ; i < len(entries); i++ {
		if entries[i].kept {
			continue
		}
		start, end := e.lineStart(entries[i].start), e.nextLine(entries[i].end)
		if end == len(e.text) && start > 0 && e.text[end-1] != '\n' { // the file still ends without a line break
			for start--; start > 0 && e.text[start-1] == '\r'; start-- {
			}
		}
		e.splice(start, end, "")
	}
}

// addLines adds entries to a block collection, each after its predecessor.
func (e *editor) addLines(n *yamlv3.Node, entries []entry, added []addition, s slot) {
	indent := e.column(entries[0].start)
	for i := range added {
		a := &added[i]
		lines := e.render(a.value, n.Kind == yamlv3.SequenceNode, a.key)
		first := entries[0].start
		switch {
		case a.at > 0:
			e.insert(e.nextLine(entries[a.at-1].end), lines, indent)
		case e.alone(first) && s.after >= 0 && e.nextLine(s.after) <= e.lineStart(first):
			e.insert(e.nextLine(s.after), lines, indent) // above the comments of the first entry
		case e.alone(first):
			e.insert(e.lineStart(first), lines, indent)
		default:
			e.splice(first, first, e.join(lines, indent)+e.lineBreak(first)+spaces(indent))
		}
	}
}

// insert adds lines at the start of another line, or at the end of the file.
func (e *editor) insert(at int, lines []string, indent int) {
	text := spaces(indent) + e.join(lines, indent)
	if at > 0 && e.text[at-1] != '\n' {
		e.splice(at, at, e.lineBreak(at)+text)
		return
	}
	e.splice(at, at, text+e.lineBreak(at-1))
}

// changeFlow adds entries to a collection in brackets, and removes others.
func (e *editor) changeFlow(n *yamlv3.Node, entries []entry, added []addition) {
	separator, colon := e.separators(n, entries)
	render := func(a *addition) string {
		text := e.renderFlow(a.value, separator)
		if n.Kind == yamlv3.MappingNode {
			text = e.renderFlow(a.key, separator) + colon + text
		}
		return text
	}
	for i := range added {
		a := &added[i]
		follows := a.at - 1
		for follows >= 0 && !entries[follows].kept {
			follows--
		}
		if follows >= 0 {
			if end := entries[follows].end; e.comments(end, e.lineEnd(end)) && strings.Contains(separator, "\n") {
				e.refuse(n, "there is a comment where something is to be added")
			}
			e.splice(entries[follows].end, entries[follows].end, separator+render(a))
			continue
		}
		first := slices.IndexFunc(entries, func(x entry) bool { return x.kept })
		e.splice(entries[first].start, entries[first].start, render(a)+separator)
	}
	before := false // whether an entry before is kept
	for i, x := range entries {
		if before = before || x.kept; x.kept {
			continue
		}
		start, end := x.start, x.end
		if before {
			start = entries[i-1].end
		} else {
			end = entries[i+1].start
		}
		if e.comments(start, x.start) || e.comments(x.end, end) {
			e.refuse(n, "comments are between what is to be removed")
		}
		e.splice(start, end, "")
	}
}

// align returns the index of each element in the list before; -1 for a new element. Matched elements keep
// their order.
func align(before, after []any) []int {
	out := make([]int, len(after))
	for j := range out {
		out[j] = -1
	}
	x, y := names(before), names(after)
	alike := func(i, j int) bool {
		return x != nil && y != nil && x[i] == y[j] || diff.Same(before[i], after[j])
	}
	// The longest common subsequence.
	lengths := make([][]int, len(before)+1)
	for i := range lengths {
		lengths[i] = make([]int, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if lengths[i][j] = max(lengths[i+1][j], lengths[i][j+1]); alike(i, j) {
				lengths[i][j] = max(lengths[i][j], lengths[i+1][j+1]+1)
			}
		}
	}
	i, j := 0, 0
	var gone, came []int // since the last pair
	pair := func() {
		for k := range min(len(gone), len(came)) {
			if isCollection(before[gone[k]]) == isCollection(after[came[k]]) && (x == nil || y == nil) {
				out[came[k]] = gone[k]
			}
		}
		gone, came = nil, nil
	}
	for i < len(before) || j < len(after) {
		switch {
		case i < len(before) && j < len(after) && alike(i, j) && lengths[i][j] == lengths[i+1][j+1]+1:
			pair()
			out[j] = i
			i, j = i+1, j+1
		case j == len(after) || i < len(before) && lengths[i+1][j] >= lengths[i][j+1]:
			gone = append(gone, i)
			i++
		default:
			came = append(came, j)
			j++
		}
	}
	pair()
	return out
}

// nameFields are fields that identify the elements of a list.
var nameFields = []string{"name", "mountPath", "key", "ip", "containerPort", "port", "topologyKey", "type"} //nolint:gochecknoglobals // an immutable table

// names returns the names of the elements of a list: the values of the first field that all have and that
// differ; nil without such a field.
func names(list []any) []any {
	for _, field := range nameFields {
		var out []any
		seen := map[any]bool{}
		for _, v := range list {
			m, _ := v.(map[string]any)
			name, has := m[field]
			if !has || isCollection(name) || seen[name] {
				break
			}
			seen[name] = true
			out = append(out, name)
		}
		if len(out) == len(list) && len(list) > 0 {
			return out
		}
	}
	return nil
}
