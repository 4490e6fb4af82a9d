package selector

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Both ways to match agree, also where a `?` stands beside characters of several bytes, or
// bytes that are none.
func FuzzMatchLong(f *testing.F) {
	f.Add("a*b?c", "a-b-bxc")
	f.Add("*é?\xff*", "aéb\xff")
	f.Add("**?", "")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if short, long := matchShort(pattern, text), matchLong(characters(pattern), characters(text)); short != long {
			t.Errorf("match(%q, %q): %t, and as long texts %t", pattern, text, short, long)
		}
	})
}

// Random texts of two letters nearly match all the time.
func TestMatchLongAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	text := func(n int, letters string) string {
		var b strings.Builder
		for range n {
			b.WriteByte(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	matched := 0
	for range 20_000 {
		pattern, subject := text(r.IntN(12), "ab*?"), text(r.IntN(24), "ab")
		long := matchLong(characters(pattern), characters(subject))
		if short := matchShort(pattern, subject); short != long {
			t.Fatalf("match(%q, %q): %t, and as long texts %t", pattern, subject, short, long)
		}
		if long {
			matched++
		}
	}
	for range 200 {
		subject := text(400+r.IntN(2000), "ab")
		at := r.IntN(100)
		if part := subject[at : at+100]; Index(subject, part) != strings.Index(subject, part) || index(bytesOf(subject), bytesOf(part)) != strings.Index(subject, part) {
			t.Fatal("Index is not that of the library")
		}
	}
	if matched < 1000 {
		t.Errorf("only %d patterns match", matched)
	}
}

// Each of these takes hours, or minutes, where the time grows with the product of the lengths.
// The test's own deadline is far beyond what they take.
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
	if Index(periodic, periodic[:n/2]+"y") >= 0 {
		t.Error("Index finds what is not there")
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
