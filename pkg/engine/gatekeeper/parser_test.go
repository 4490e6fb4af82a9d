package gatekeeper

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		says, text string
		want       location
	}{
		{"nothing is an empty path", "", nil},
		{"white space is nothing", " \t\r\n", nil},
		{"a field", "spec", location{fieldNode("spec")}},
		{"fields", "spec.dnsPolicy", location{fieldNode("spec"), fieldNode("dnsPolicy")}},
		{"an element of a list", "spec.containers[name:foo].image", location{
			fieldNode("spec"), fieldNode("containers"), listNode{Key: "name", Value: "foo"}, fieldNode("image"),
		}},
		{"white space between words does not matter", " spec . containers [ name : foo ] ", location{
			fieldNode("spec"), fieldNode("containers"), listNode{Key: "name", Value: "foo"},
		}},
		{"every element", "c[name: *].x", location{fieldNode("c"), listNode{Key: "name"}, fieldNode("x")}},
		{"an asterisk in quotes is a text", `c[name: "*"]`, location{fieldNode("c"), listNode{Key: "name", Value: "*"}}},
		{"a number is a number", "p[containerPort: 8080]", location{fieldNode("p"), listNode{Key: "containerPort", Value: int64(8080)}}},
		{"leading zeros do not make it octal", "p[n: 0123]", location{fieldNode("p"), listNode{Key: "n", Value: int64(123)}}},
		{"a number in quotes is a text", `p[n: "8080"]`, location{fieldNode("p"), listNode{Key: "n", Value: "8080"}}},
		{"a sign makes it a text", "p[n: -1]", location{fieldNode("p"), listNode{Key: "n", Value: "-1"}}},
		{"true is a text", "p[n: true]", location{fieldNode("p"), listNode{Key: "n", Value: "true"}}},
		{"quotes keep dots and slashes", `metadata.labels."app.kubernetes.io/name"`, location{
			fieldNode("metadata"), fieldNode("labels"), fieldNode("app.kubernetes.io/name"),
		}},
		{"single quotes are quotes", `a.'b c'`, location{fieldNode("a"), fieldNode("b c")}},
		{"a backslash takes the next character", `"a\"b\\c\nd"`, location{fieldNode(`a"b\cnd`)}},
		{"names may be empty", `""["":""]`, location{fieldNode(""), listNode{Key: "", Value: ""}}},
		{"a hyphen may begin a name", "-a.b_c", location{fieldNode("-a"), fieldNode("b_c")}},
		{"a number in quotes may be a field", `a."1"`, location{fieldNode("a"), fieldNode("1")}},
		{"text beyond ASCII needs quotes", `"größe"`, location{fieldNode("größe")}},
	} {
		t.Run(c.says, func(t *testing.T) {
			got, err := parseLocation(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			again, err := parseLocation(got.String())
			if err != nil {
				t.Fatalf("%q is printed as %q, which does not parse: %v", c.text, got, err)
			}
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("%q is printed as %q, which is something else: %s", c.text, got, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"spec.":                        "trailing separators are forbidden (at character 5)",
		".a":                           `unexpected token: expected field name or eof, got: SEPARATOR: "." (at character 1)`,
		"a..b":                         `unexpected token: expected field name or eof, got: SEPARATOR: "." (at character 3)`,
		"[a: b].c":                     `unexpected token: expected field name or eof, got: LBRACKET: "[" (at character 1)`,
		"a.[b: c]":                     `unexpected token: expected field name or eof, got: LBRACKET: "[" (at character 3)`,
		"a.1":                          `unexpected token: expected field name or eof, got: INT: "1" (at character 3)`,
		"/spec/x":                      `unexpected token: expected field name or eof, got: ERROR: "/" (at character 1)`,
		"a[b: c][d: e]":                `unexpected token: expected '.' or eof, got: LBRACKET: "[" (at character 8)`,
		"a b":                          `unexpected token: expected '.' or eof, got: IDENT: "b" (at character 3)`,
		"a.b/c":                        `unexpected token: expected '.' or eof, got: ERROR: "/" (at character 4)`,
		"a[*].b":                       `unexpected token: expected keyField in listSpec, got: GLOB: "*" (at character 3)`,
		"a[0].b":                       `unexpected token: expected keyField in listSpec, got: INT: "0" (at character 3)`,
		"a[].b":                        `unexpected token: expected keyField in listSpec, got: RBRACKET: "]" (at character 3)`,
		"a[b]":                         `unexpected token: expected ':' following keyField b, got: RBRACKET: "]" (at character 4)`,
		"spec.containers[name":         `unexpected token: expected ':' following keyField name, got: EOF: "" (at character 21)`,
		"a[b: ]":                       `unexpected token: expected key value or glob in listSpec, got: RBRACKET: "]" (at character 6)`,
		"a[n: 'x":                      `unexpected token: expected key value or glob in listSpec, got: ERROR: "x" (at character 6)`,
		"a[name: foo*]":                `unexpected token: expected ']' following listSpec, got: GLOB: "*" (at character 12)`,
		"a[ip: 10.0.0.1]":              `unexpected token: expected ']' following listSpec, got: SEPARATOR: "." (at character 9)`,
		"a[name: nginx:1]":             `unexpected token: expected ']' following listSpec, got: COLON: ":" (at character 14)`,
		"a[n: 0x12]":                   `unexpected token: expected key value or glob in listSpec, got: ERROR: "0x12" (at character 6)`,
		"a[n: 99999999999999999999].b": "invalid integer: overflow in integer string: 99999999999999999999: parsing key value for key: n (at character 6)",
		`a."b\`:                        `unexpected token: expected field name or eof, got: ERROR: "b" (at character 3)`,
	} {
		_, err := parseLocation(text)
		if err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}

// FuzzParse holds that no string makes the parser panic, and that what it prints
// parses to the same path.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "spec.containers[name: foo].image", `a."b\"c"[n: 12]`, "a[n: *].b", "a[b: 'x", "größe", "a\x00b", `'\`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseLocation(text)
		if err != nil {
			return
		}
		again, err := parseLocation(p.String())
		if err != nil {
			t.Fatalf("%q is printed as %q: %v", text, p, err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Fatalf("%q is printed as %q: %s", text, p, diff)
		}
	})
}
