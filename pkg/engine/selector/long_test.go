package selector

import (
	"strings"
	"testing"
)

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
