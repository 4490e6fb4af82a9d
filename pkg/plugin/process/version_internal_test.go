package process

import "testing"

// The workflow of a release calls the image of v1.2.3 by the tag 1.2.3, as goreleaser does the archives.
func TestImage(t *testing.T) {
	defer func() { version = "" }()
	for _, built := range []string{"1.2.3", "v1.2.3"} { // by goreleaser, by `go install`
		version = built
		if got := Image(); got != Repository+":1.2.3" {
			t.Errorf("%s: %s", built, got)
		}
	}
}
