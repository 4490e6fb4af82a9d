package translate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
)

// textsFor are short texts of the characters that expressions of the tests ask for, all of them up to a
// length, and some longer ones.
func textsFor(alphabet []string, length int) []string {
	all := []string{"", "docker.io/library/nginx:1", "docker.io/x/y", "docker/io/library/a\nb/c", "docker.io/library/", "nginx", "ä/ö/ü€", "a/b\n", "\n", "\r\n", "𝒳/𝒴", "é/x"}
	last := []string{""}
	for range length {
		var next []string
		for _, text := range last {
			for _, c := range alphabet {
				next = append(next, text+c)
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

// TestReplaceStart evaluates replacements and what MutatingAdmissionPolicies have for them on hostile texts,
// and says which ones they have nothing for.
func TestReplaceStart(t *testing.T) {
	texts := textsFor([]string{"a", "b", "/", "\n", "ä", "𝒳"}, 3)
	objects := make([]map[string]any, 0, len(texts))
	for _, text := range texts {
		objects = append(objects, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "annotations": map[string]any{"t": text}}})
	}
	b := newBoth(t, objects)
	for _, c := range []struct {
		pattern, with string
		translated    bool
	}{
		{`^(docker.io/library/|[^/]+/)?(.*)$`, "mirror.example.com/$2", true},
		{`^[^/]+/(.*)$`, "m/$1", true},
		{`^[^/]+/(.+)$`, "m/$1", true},
		{`^[^/]*/(.+)`, "m/${1}", true},
		{`^([^/]*/)*(.*)$`, "m/$2", true},
		{`^([^/]*/)?(?P<rest>.*)$`, "${rest}", true},
		{`^(.*)$`, "ä$1", true},
		{`^(.*)`, "x/$1", true},
		{`\A(.*)\z`, "x/$1", true},
		{`(?s)^.*?/(.*)$`, "x/$1", true},
		{`(?s)^(a|ab|/)*(.*)$`, "x/$2", true},
		{`^(a|ab)(.*)`, "x/$2", true},
		{`^a\z(.*)`, "x/$1", true},
		{`^(?:)(.*)$`, "x/$1", true},
		{`^a`, "", true},
		{`^a*`, "ä", true},
		{`^(a|b)*?/`, "$$1${2}$3x", true},
		{`^[^/]*$`, "x", true},
		{`(?i)^A+`, "x", true},
		{`^`, "x", true},
		{`^$`, "x", true},
		{`^[a/]+(b.*)$`, "$1", false},   // the group may begin at another place than where the part before it ends
		{`^a*?(b*.*)$`, "$1", false},    // the part before it matches nothing by itself
		{`^(a|a\n)(.*)$`, "x$2", false}, // a line feed is in one of two matches
		{`^[^b]*?(.*)$`, "x$1", false},
		{`^([^/]+/)?(.+)$`, "x$2", false}, // the part before it gives back what it took
		{`^([^/]+/)?(.*?)`, "x$2", false},
		{`^(?i)a(.*)$`, "x$1", false}, // letters of both cases are not followed
		{`^a\b(.*)$`, "x$1", false},
		{`^(a)(.*)$`, "$1$2", false},
		{`^(a)(.*)$`, "${2}x", false},
		{`^(a)(.*)$`, "$2x$02$2ä", true},
		{`^(a)(.*)$`, "$1", false},
		{`^(a)(.*)$`, "$0", false},
		{`^(a)(.*)b$`, "x$2", false},
		{`(?m)^a`, "x", false},
		{`(?m)^a(.*)$`, "x$1", false},
		{`^a|b`, "x", false},
		{`(?:^)*a`, "x", false},
		{`(^a|b)`, "x", false},
		{`a`, "x", true},
		{`docker\.io/`, "m/", true},
		{`\Qa/\E`, "$$1", true},
		{`ä`, "", true},
		{`a`, "$0", false},
		{`(a)`, "$1", false},
		{`(?i)a`, "x", false},
		{`a$`, "x", false},
		{`^a|b(.*)$`, "x$1", false},
		{`^a[(](.*)$|b`, "x$1", false},
	} {
		t.Run(strings.ReplaceAll(c.pattern+" "+c.with, "/", "|"), func(t *testing.T) {
			query := fmt.Sprintf("{{ regex_replace_all('%s', request.object.metadata.annotations.t, '%s') }}", c.pattern, c.with)
			for _, language := range []translate.Language{translate.MutatingPolicy, translate.MutatingAdmissionPolicy} {
				err := b.query(t, language, true, query)
				var refused *translate.UnsupportedError
				if err != nil && !errors.As(err, &refused) {
					t.Fatal(err)
				}
				if want := c.translated || language == translate.MutatingPolicy; (err == nil) != want {
					t.Errorf("translated to language %d: %v", language, err)
				}
			}
		})
	}
}
