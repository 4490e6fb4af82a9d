package translate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
)

// TestReplaceStart evaluates replacements and what MutatingAdmissionPolicies have for them on hostile strings,
// and says which ones they have nothing for.
func TestReplaceStart(t *testing.T) {
	texts := []string{"", "docker.io/library/nginx:1", "docker.io/x/y", "nginx", "ä/ö/ü€", "a/b", "é/x", "a", "b", "aab", "a b"}
	for _, one := range []string{"a", "b", "/", "ä", "𝒳"} {
		for _, other := range []string{"a", "b", "/", "ä"} {
			texts = append(texts, one+other+"/", other+"/"+one+other)
		}
	}
	objects := make([]map[string]any, 0, 2*len(texts))
	for _, text := range texts {
		for _, more := range []string{"", "\n" + text} { // of which a label has none
			metadata := map[string]any{"name": "p", "labels": map[string]any{"t": text}, "annotations": map[string]any{"t": text + more}}
			objects = append(objects, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
		}
	}
	b := newBoth(t, objects)
	for _, c := range []struct {
		pattern, with string
		translated    string // of which of the two
	}{
		{`^(docker.io/library/|[^/]+/)?(.*)$`, "mirror.example.com/$2", "labels"},
		{`^([^/]*/)*(.*)$`, "m/$2", "labels"},
		{`^([^/]*/)?(?P<rest>.*)$`, "${rest}", "labels"},
		{`\A(.*)\z`, "x/$1", "labels"},
		{`^[^b]*?(.*)$`, "x$1", "labels"},
		{`^(?i)A(.*)$`, "x$1", "labels"},
		{`^(a)(.*)$`, "$2x$02$2ä", "both"},
		{`(?s)^.*?/(.*)$`, "x/$1", "both"},
		{`(?s)^(a|ab|/)*(.*)$`, "x/$2", "both"},
		{`^(.*)`, "x/$1", "both"},
		{`^(a|ab)(.*)`, "x/$2", "both"},
		{`^a*`, "ä", "both"},
		{`^(a|b)*?/`, "$$1${2}$3x", "both"},
		{`(?i)^A+`, "x", "both"},
		{`^$`, "x", "both"},
		{`a`, "x", "both"},
		{`\Qa/\E`, "$$1", "both"},
		{`^[^/]+/(.+)$`, "m/$1", ""}, // the part before the group gives back what it took
		{`^a*?(b*.*)$`, "$1", ""},    // the part before it matches nothing by itself
		{`^([^/]+/)?(.*?)`, "x$2", ""},
		{`^(a)(.*)$`, "$1$2", ""},
		{`^(a)(.*)$`, "${2}x", ""},
		{`^(a)(.*)$`, "$1", ""},
		{`^(a)(.*)b$`, "x$2", ""},
		{`(?m)^a(.*)$`, "x$1", ""},
		{`^a|b`, "x", ""},
		{`(^a|b)`, "x", ""},
		{`a`, "$0", ""},
		{`(?i)a`, "x", ""},
		{`a$`, "x", ""},
		{`^a[(](.*)$|b`, "x$1", ""},
	} {
		t.Run(strings.ReplaceAll(c.pattern+" "+c.with, "/", "|"), func(t *testing.T) {
			for _, of := range []string{"labels", "annotations"} {
				query := fmt.Sprintf("{{ regex_replace_all('%s', request.object.metadata.%s.t, '%s') }}", c.pattern, of, c.with)
				for _, language := range []translate.Language{translate.MutatingPolicy, translate.MutatingAdmissionPolicy} {
					err := b.query(t, language, true, query)
					var refused *translate.UnsupportedError
					if err != nil && !errors.As(err, &refused) {
						t.Fatal(err)
					}
					if want := c.translated == of || c.translated == "both" || language == translate.MutatingPolicy; (err == nil) != want {
						t.Errorf("%s: translated to language %d: %v", of, language, err)
					}
				}
			}
		})
	}
}
