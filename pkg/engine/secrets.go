package engine

// Secrets knows which texts a run must not show: the values of the Secrets that it
// has read, and what was computed from these. Rules are evaluated on the real values,
// and report each text that they make from others. It is safe for concurrent use.
type Secrets interface {
	// Any reports whether there is such a text. Until there is one, the other methods
	// need not be called.
	Any() bool
	// Known reports whether a value is such a text or contains one.
	Known(value any) bool
	// Derive reports a result that was computed from values. If one of these is Known,
	// the texts that are new in the result are Known from then on.
	Derive(result any, from ...any)
}
