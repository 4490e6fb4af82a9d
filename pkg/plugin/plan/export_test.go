package plan

import "bytes"

// ValidateWithin validates with a budget that a test can wait for.
func (e *Entry) ValidateWithin(budget int) error { return e.validate(&budget) }

// Text is what Save would write.
func (p *Plan) Text() ([]byte, error) {
	var b bytes.Buffer
	err := p.write(&b, nil)
	return b.Bytes(), err
}
