package engine

import "testing"

// The distance of two short texts is the least number of mistakes that leads from one to the other.
func TestDistance(t *testing.T) {
	const letters = "abc"
	texts := []string{""}
	for i := 0; len(texts[i]) < 5; i++ {
		for _, c := range letters {
			texts = append(texts, texts[i]+string(c))
		}
	}
	for _, a := range texts {
		for _, b := range texts {
			want := alignment(a, b)
			for most := range 4 {
				if got := distance(a, b, most); got != want && (got <= most || want <= most) {
					t.Fatalf("%q, %q, at most %d: got %d, want %d", a, b, most, got, want)
				}
			}
		}
	}
}

// alignment is the optimal string alignment distance, by its definition.
func alignment(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
			case a[i-1] == b[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j], d[i][j-1], d[i-1][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
