package wording

import (
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Reason is why something was not done, and with which objects.
type Reason struct {
	Text  string // that of the first object; without its name where there are others
	Count int
	first []engine.ObjectKey
}

// FewNamed is how many objects a Reason names.
const FewNamed = 3

// Many reports whether there are more objects than Names returns.
func (r *Reason) Many() bool { return r.Count > FewNamed }

// Names returns the names of the first few objects, and how many more there are.
func (r *Reason) Names() string {
	return engine.FewOf(r.first, r.Count)
}

// Reasons groups objects by why something was not done with them: texts are alike if they differ in
// the name of the object alone. The zero value has none.
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
	if reason.Count++; reason.Count > 1 {
		reason.Text = alike
	}
	if len(reason.first) < FewNamed {
		reason.first = append(reason.first, key)
	}
	return reason
}

// All returns the reasons in the order in which they came up.
func (r *Reasons) All() []*Reason { return r.all }

// WithoutName returns a text about an object with "..." in the place of its name, where the text
// quotes it, or has its namespace, its kind or a slash before it. What stands by itself may be another word.
func WithoutName(text string, key engine.ObjectKey) string {
	if key.Name == "" || !strings.Contains(text, key.Name) {
		return text
	}
	names := []string{`"` + key.Name + `"`, `"..."`, `'` + key.Name + `'`, `'...'`}
	if key.Namespace != "" {
		names = append(names, `"`+key.Namespace+"/"+key.Name+`"`, `"..."`)
	}
	text = strings.NewReplacer(names...).Replace(text)
	if key.Namespace != "" {
		text = replaceWord(text, key.Namespace+"/"+key.Name, "...")
	}
	text = replaceWord(text, "/"+key.Name, "/...")
	return replaceWord(text, key.Kind+" "+key.Name, key.Kind+" ...")
}

// replaceWord replaces a word where no other letter of a name follows or precedes it.
func replaceWord(text, word, by string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, word)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if inName(word[0]) && endsInName(before) || beginsInName(after) {
			b.WriteString(word)
		} else {
			b.WriteString(by)
		}
		text = after
	}
}

func endsInName(text string) bool   { return text != "" && inName(text[len(text)-1]) }
func beginsInName(text string) bool { return text != "" && inName(text[0]) }

func inName(c byte) bool {
	return c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
