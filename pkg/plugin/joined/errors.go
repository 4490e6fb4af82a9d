package joined

// Errors takes an error of errors.Join apart; only its outermost layer, since what
// a reason wraps is part of that reason. Nil has none.
func Errors(err error) []error {
	if err == nil {
		return nil
	}
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range all.Unwrap() {
		out = append(out, Errors(e)...)
	}
	return out
}
