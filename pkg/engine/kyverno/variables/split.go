package variables

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
	p := parser{doc: doc, prefix: path, keeps: true}
	resolved, err := p.parse(doc, nil)
	if err != nil {
		return nil, err
	}
	return resolved.render(nil)
}
