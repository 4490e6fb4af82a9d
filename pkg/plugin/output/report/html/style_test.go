package html_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Each text colour stands out from each ground that it is used on: WCAG 2.2 wants
// 4.5 to 1 for text and 3 to 1 for what bounds a control.
func TestContrast(t *testing.T) {
	style, err := os.ReadFile("assets/style.css")
	if err != nil {
		t.Fatal(err)
	}
	schemes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(string(style), 3)
	for i, name := range []string{"light", "dark", "print"} {
		colors := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]+);`).FindAllStringSubmatch(schemes[i][1], -1) {
			colors[m[1]] = m[2]
		}
		for _, pair := range []string{
			"ink page", "ink card", "soft page", "soft card", "accent page", "accent card", "add-ink add", "del-ink del",
			"warn-ink warn", "warn-ink card", "fail-ink fail", "fail-ink card", "edge page 3", "edge card 3",
		} {
			words := append(strings.Fields(pair), "4.5")
			least, _ := strconv.ParseFloat(words[2], 64)
			if got := contrast(t, colors[words[0]], colors[words[1]]); got < least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", name, words[0], words[1], got, least)
			}
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// luminance is the relative luminance that WCAG 2.2 defines.
func luminance(t *testing.T, color string) float64 {
	t.Helper()
	color = strings.TrimPrefix(color, "#")
	if len(color) == 3 {
		color = string([]byte{color[0], color[0], color[1], color[1], color[2], color[2]})
	}
	n, err := strconv.ParseUint(color, 16, 32)
	if err != nil {
		t.Fatalf("no color: %q", color)
	}
	linear := func(c uint64) float64 {
		if v := float64(c) / 255; v > 0.04045 {
			return math.Pow((v+0.055)/1.055, 2.4)
		}
		return float64(c) / 255 / 12.92
	}
	return 0.2126*linear(n>>16) + 0.7152*linear(n>>8&255) + 0.0722*linear(n&255)
}
