package wording

import (
	"fmt"
	"strings"
)

// Plural is "1 object" or "2 objects", "1 policy" or "2 policies". The noun is an
// English one that is regular.
func Plural(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", noun)
	}
	if strings.HasSuffix(noun, "y") {
		noun = strings.TrimSuffix(noun, "y") + "ie"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
