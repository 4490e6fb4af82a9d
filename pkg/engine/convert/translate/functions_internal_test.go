package translate

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// Every function is translated or refused with a reason, and testdata calls each of those that are
// translated.
func TestEveryFunctionIsKnown(t *testing.T) {
	queries, err := os.ReadFile("testdata/queries.txtar")
	if err != nil {
		t.Fatal(err)
	}
	all := jmespath.Functions()
	for _, name := range all {
		f, ok := functions[name]
		switch {
		case !ok:
			t.Errorf("%s is neither translated nor refused", name)
		case (f.translate == nil) == (f.refused == ""):
			t.Errorf("%s has to be either translated or refused", name)
		case f.translate != nil && !strings.Contains(string(queries), name+"("):
			t.Errorf("%s is not called in testdata", name)
		}
	}
	for name := range functions {
		if !slices.Contains(all, name) {
			t.Errorf("there is no function %s", name)
		}
	}
}

// TestForms checks that what has the form of a time, a duration or a number is one: CEL fails for any other
// text.
func TestForms(t *testing.T) {
	isTime, isAmount, hours, isNumber := regexp.MustCompile(utcTime), regexp.MustCompile(durationText), regexp.MustCompile(threeHours), regexp.MustCompile(decimal)
	for _, year := range []int{1900, 1999, 2000, 2004, 2023, 2024, 2096, 2100} {
		for day := range 12 * 31 {
			text := fmt.Sprintf("%04d-%02d-%02dT23:59:59Z", year, day/31+1, day%31+1)
			if _, err := time.Parse(time.RFC3339, text); isTime.MatchString(text) != (err == nil) {
				t.Errorf("%s: a time: %t, %v", text, isTime.MatchString(text), err)
			}
		}
	}
	for _, text := range []string{"2024-13-01T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "0000-01-01T00:00:00Z", "2024-01-01"} {
		if isTime.MatchString(text) {
			t.Errorf("%s is taken for a time", text)
		}
	}
	long := strings.Repeat("99999999.9s", 14)
	for text, want := range map[string]bool{
		"1h": true, "+1h1h": true, "-1.5h": true, ".5h": true, "2562047h47m16s": false, "876000h": true, "999999h999999h" + long: true, "31536000s": true, "1µs": true, "1μs": true,
		"1h2m3.5s4ms5us6ns": true, "99999999h": false, "9999999999999h": false, "1h1h1h": false, "1d": false, "": false, "h": false, "0": false,
	} {
		got := isAmount.MatchString(text) && !hours.MatchString(text)
		if _, err := time.ParseDuration(text); got != want || got && err != nil {
			t.Errorf("%q: a duration: %t, want %t, %v", text, got, want, err)
		}
	}
	for text, want := range map[string]bool{"1": true, "-0.5": true, strings.Repeat("9", 200) + "e99": true, strings.Repeat("9", 400): false, "1e400": false, "abc": false} {
		got := isNumber.MatchString(text)
		if _, err := strconv.ParseFloat(text, 64); got != want || got && err != nil {
			t.Errorf("%q: a number: %t, want %t, %v", text, got, want, err)
		}
	}
}
