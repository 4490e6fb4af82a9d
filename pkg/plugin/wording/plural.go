package wording

import (
	"fmt"
	"strings"
)

// Plural returns "1 object" or "2 objects", "1 policy" or "2 policies". The noun is a
// regular English one.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, plural(noun))
}

// PluralNumber is Plural with commas between thousands: "10,000 objects".
func PluralNumber(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Number(n) + " " + plural(noun)
}

func plural(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return stem + "ies"
	}
	return noun + "s"
}
