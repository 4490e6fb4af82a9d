package impact

// valueAt walks down maps; nil where there is nothing.
func valueAt(object map[string]any, names ...string) any {
	var v any = object
	for _, name := range names {
		below, _ := v.(map[string]any)
		v = below[name]
	}
	return v
}

// textOf is a value that is a text, and empty for any other.
func textOf(v any) string {
	s, _ := v.(string)
	return s
}

// boolOf is a value that is true or false, and false for any other.
func boolOf(v any) bool {
	b, _ := v.(bool)
	return b
}

// numberOf is a value that is a count; fallback stands where there is none.
func numberOf(v any, fallback int64) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return fallback
}
