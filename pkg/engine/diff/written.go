package diff

// AsWritten returns the result of a change on an object as somebody wrote it: decoded is a server's form of
// it, and after the result on decoded. Unchanged values keep their spelling, and defaults stay away. Nothing
// is modified; the result refers to the values of all three.
func AsWritten(written, decoded, after map[string]any, t Type) map[string]any {
	out := make(map[string]any, len(after))
	for name, v := range written {
		if _, known := decoded[name]; !known {
			out[name] = v // which a server drops
		}
	}
	for name, v := range after {
		d, known := decoded[name]
		w, has := written[name]
		switch {
		case !known && !has:
			out[name] = v
		case !known: // written content that a server drops stays in it
			out[name] = writtenValue(w, map[string]any{}, v, t.Field(name))
		case !Same(d, v):
			out[name] = writtenValue(w, d, v, t.Field(name))
		case has:
			out[name] = w
		}
	}
	return out
}

func writtenValue(written, decoded, after any, t Type) any {
	if Shared(written, decoded) {
		return after
	}
	switch after := after.(type) {
	case map[string]any:
		if d, ok := decoded.(map[string]any); ok {
			w, _ := written.(map[string]any)
			return AsWritten(w, d, after, t)
		}
	case []any:
		d, ok := decoded.([]any)
		if w, isList := written.([]any); ok && isList && len(w) == len(d) {
			return writtenList(w, d, after, t)
		}
	}
	return after
}

func writtenList(written, decoded, after []any, t Type) []any {
	n := namingOf(t)
	old, now := n.nameAll(decoded), n.nameAll(after)
	start, end := ends(decoded, after, Same)
	out := make([]any, len(after))
	for i, v := range after {
		place, known := i, len(after) == len(decoded) || i < start
		switch {
		case old != nil && now != nil:
			place, known = old.place(now.ids[i])
		case i >= len(after)-end:
			place, known = i-len(after)+len(decoded), true
		}
		switch {
		case !known:
			out[i] = v
		case Same(decoded[place], v):
			out[i] = written[place]
		default:
			out[i] = writtenValue(written[place], decoded[place], v, n.element)
		}
	}
	return out
}
