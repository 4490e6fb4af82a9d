package limit

// MaxSize is how many bytes a string or a value may have that is built, written out as JSON, about.
const MaxSize = 32 << 20

// bytesOfValue is what each value takes besides its string.
const bytesOfValue = 16

// Size returns an *Error if so many bytes are more than a rule may build at once.
func Size(bytes int) error {
	if bytes > MaxSize {
		return &Error{What: "bytes that a rule builds at once", Max: MaxSize}
	}
	return nil
}

// Value is Size for the Bytes of a value.
func Value(value any) error { return Size(Bytes(value)) }

// Bytes returns how many bytes a value of JSON takes, about, and no more than tells that it is more than MaxSize: as a tree, as whatever
// writes it will see it, since a list can hold another one so often that it would fit into no memory when it is written.
func Bytes(value any) int { return add(0, value) }

// add adds what a value takes to a sum, until that is too large.
func add(sum int, value any) int {
	if sum += bytesOfValue; sum > MaxSize {
		return sum
	}
	switch v := value.(type) {
	case string:
		sum += len(v)
	case []any:
		for _, item := range v {
			if sum = add(sum, item); sum > MaxSize {
				return sum
			}
		}
	case map[string]any:
		for key, item := range v {
			if sum = add(sum+len(key), item); sum > MaxSize {
				return sum
			}
		}
	}
	return sum
}
