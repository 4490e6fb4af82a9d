package variables

import "strconv"

// Segment is a piece of a text: plain text, or a variable.
type Segment struct {
	Text string
	// Variable is what stands between {{ and }}, in pieces where other variables stand in it; nil
	// for plain text.
	Variable []Segment
}

// Split takes a text apart as rendering it does, without its references. The error is that of a
// text whose variables nest too deep.
func Split(text string) ([]Segment, error) {
	segments, err := scan(text)
	return exported(segments), err
}

func exported(segments []segment) []Segment {
	out := make([]Segment, len(segments))
	for i, s := range segments {
		switch v := s.variable; {
		case v == nil:
			out[i].Text = s.text
		case v.pieces != nil:
			out[i].Variable = exported(v.pieces)
		default:
			out[i].Variable = []Segment{{Text: v.source()}}
		}
	}
	return out
}

// Resolve replaces the references $(path) of a document, and leaves its variables as they are.
func Resolve(doc any, path ...string) (any, error) {
	p := parser{doc: doc, prefix: path}
	return p.resolve(doc, nil)
}

func (p *parser) resolve(value any, path []string) (any, error) {
	var err error
	switch v := value.(type) {
	case string:
		return p.references(v, path)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			if out[i], err = p.resolve(v[i], at(path, strconv.Itoa(i))); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range sortedKeys(v) {
			name, err := p.references(key, at(path, key))
			if err != nil {
				return nil, err
			}
			if out[name], err = p.resolve(v[key], at(path, key)); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}
