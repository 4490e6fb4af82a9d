package plan

// ValidateWithin validates with a budget that a test can wait for.
func (p *Plan) ValidateWithin(budget int) error { return p.validateEntries(budget) }

// Text is what Save would write.
func (p *Plan) Text() ([]byte, error) { return p.text(nil) }
