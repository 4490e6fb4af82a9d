package input

import (
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// What is wrong with a Secret is said without a value of it, and of anything else with what it is.
func TestErrorsQuoteNoSecrets(t *testing.T) {
	for name, c := range map[string]struct{ data, want, quoted string }{
		"an alias":            {"{a: *TEXT}", "unknown *** referenced", "unknown anchor 'TEXT' referenced"},
		"no integer":          {"{a: !!int TEXT}", "*** is not a int", `"TEXT" is not a int`},
		"no float":            {"{a: !!float TEXT}", "*** is not a float", `"TEXT" is not a float`},
		"no boolean":          {"{a: !!bool TEXT}", "*** is not a bool", `"TEXT" is not a bool`},
		"a mapping in a text": {"\n  a: TEXT: x", "mapping values are not allowed", "mapping values are not allowed"},
		"JSON: no value":      {`{"a": @TEXT}`, "invalid character looking for", "invalid character '@' looking for"},
		"JSON: no comma":      {`{"a": "x" @TEXT}`, "invalid character after", "invalid character '@' after"},
		"JSON: no escape":     {`{"a": "\@TEXT"}`, "invalid character in string", "invalid character '@' in string"},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, want := range map[string]string{"Secret": c.want, "ConfigMap": c.quoted} {
				text := strings.ReplaceAll("apiVersion: v1\nkind: "+kind+"\nmetadata: {name: s}\ndata: "+c.data+"\n", "TEXT", "hunter2hunter2")
				if strings.HasPrefix(name, "JSON") {
					text = strings.ReplaceAll(`{"apiVersion": "v1", "kind": "`+kind+`", "metadata": {"name": "s"}, "data": `+c.data+"}", "TEXT", "hunter2hunter2")
				}
				var got string
				err := (&Reader{}).readStream(t.Context(), stream{strings.NewReader(text), "file"}, Files{}, func(_ engine.Document, err error) bool {
					if err != nil {
						got += err.Error()
					}
					return true
				})
				if err != nil {
					got += err.Error()
				}
				want = strings.ReplaceAll(want, "TEXT", "hunter2hunter2")
				if !strings.Contains(got, want) || kind == "Secret" && (strings.Contains(got, "hunter") || strings.Contains(got, "@")) {
					t.Errorf("%s: got %s, want %s", kind, got, want)
				}
			}
		})
	}
}
