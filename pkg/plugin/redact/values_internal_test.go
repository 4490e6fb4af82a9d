package redact

import (
	"fmt"
	"strings"
	"testing"
)

// A run that never ends meets ever new values: what is remembered of them is bounded, and has those
// that were met last.
func TestValuesAreForgotten(t *testing.T) {
	var v values
	const each = headLength + overhead
	secret := func(i int) string { return fmt.Sprintf("%08d%s", i, strings.Repeat("s", headLength)) }
	most, last := 0, 3*maxRemembered/each
	for i := range last {
		v.add(secret(i))
		if i%1000 == 0 {
			v.add("met-again")
			v.add("abc") // too short to be looked for inside a text
			most = max(most, v.now.size+v.before.size)
		}
	}
	if most > 2*maxRemembered+each {
		t.Errorf("%d bytes are remembered", most)
	}
	if n := len(v.now.lengths) + len(v.before.lengths); n >= last {
		t.Errorf("all of %d values are remembered", n)
	}
	for _, text := range []string{secret(last - 1), secret(last - maxRemembered/each), "met-again"} {
		if got := v.mask("a "+text+" b", 0); got != "a "+Mask+" b" {
			t.Errorf("%.40s is shown as %.40s", text, got)
		}
	}
	if got := v.mask("abc", 0); got != Mask {
		t.Errorf("abc is shown as %s", got)
	}
	if text := secret(0); v.mask(text, 0) != text {
		t.Errorf("the first value is remembered")
	}
}
