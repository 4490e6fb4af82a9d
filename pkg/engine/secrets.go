package engine

// Secrets knows which texts a run must not show: the values of the Secrets that it
// has read, and what was computed from these. Rules evaluate on what is really
// there; what they have to do is to tell of every text that they make of others.
// It is safe for concurrent use.
type Secrets interface {
	// Any tells whether there is such a text; until there is one, nobody need ask
	// or tell anything.
	Any() bool
	// Known tells whether a value is such a text, or holds one.
	Known(value any) bool
	// Derive tells of a result that was computed from values. If one of these is
	// Known, the texts that are new in the result are known from then on.
	Derive(result any, from ...any)
}
