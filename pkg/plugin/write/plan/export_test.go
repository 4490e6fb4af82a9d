package plan

import "bytes"

// Text is what Save would write.
func (p *Plan) Text() ([]byte, error) {
	var b bytes.Buffer
	err := p.write(&b)
	return b.Bytes(), err
}
