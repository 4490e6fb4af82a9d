package selector

import (
	"strings"
	"testing"
)

// Each of these takes hours where the time grows with the product of the lengths.
func TestMatchWildcardIsLinear(t *testing.T) {
	const n = 1_000_000
	a := strings.Repeat("a", n)
	periodic := strings.Repeat("aa"+strings.Repeat("x", 15), n/17)
	for name, c := range map[string]struct{ pattern, text string }{
		"a run that does not end":    {"*" + a[:n/2] + "b", a},
		"any characters at the end":  {"*" + strings.Repeat("a?", n/4) + "b", a},
		"any characters, then stars": {"*" + strings.Repeat("a?", n/4) + "b*c", a},
		"as many as may be":          {"*" + strings.Repeat("a?", maxSegment/2-1) + "b*", a},
		"runs between stars":         {strings.Repeat("*"+a[:1000], n/2000) + "b", a},
		"gaps between stars":         {strings.Repeat("*"+strings.Repeat("a?", maxSegment/2), n/2000) + "b*c", a},
		"nearly a period":            {"*" + periodic[:n/2] + "y*", periodic},
		"stars alone":                {strings.Repeat("*", n) + "b", a},
	} {
		if MatchWildcard(c.pattern, c.text) {
			t.Errorf("%s: it matches", name)
		}
	}
}

// Only what is searched for at each place of a text is limited.
func TestCheckWildcard(t *testing.T) {
	long := strings.Repeat("a?", maxSegment)
	for pattern, sound := range map[string]bool{
		"": true, "*?*": true, long: true, long + "*": true, "*" + long: true, long + "*" + long: true,
		"*" + strings.Repeat("a", 2*maxSegment) + "*?": true, "*" + strings.Repeat("?", maxSegment) + "*": true,
		"*" + strings.Repeat("é", maxSegment-1) + "?*": true, "*" + long + "*": false, "a*b*" + long + "*c": false,
	} {
		if err := CheckWildcard(pattern); (err == nil) != sound {
			t.Errorf("CheckWildcard of %d bytes: %v, want sound: %t", len(pattern), err, sound)
		}
	}
	if MatchWildcard("*"+long+"*", strings.Repeat("a", 4*maxSegment)) {
		t.Error("a pattern that is refused matches")
	}
}

func BenchmarkMatchWildcard(b *testing.B) {
	for name, c := range map[string]struct{ pattern, text string }{
		"plain": {"Deployment", "Deployment"},
		"image": {"*:latest", "registry.example.com/team/app:v1.2.3"},
		"64KiB": {"*" + strings.Repeat("a", 1<<15) + "b", strings.Repeat("a", 1<<16)},
		"1MiB":  {"*" + strings.Repeat("a", 1<<19) + "b", strings.Repeat("a", 1<<20)},
		"1MiB?": {"*" + strings.Repeat("a?", maxSegment/2-1) + "b*", strings.Repeat("a", 1<<20)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				MatchWildcard(c.pattern, c.text)
			}
		})
	}
}
