package gatekeeper

import (
	"strings"
	"testing"
)

func TestImageWith(t *testing.T) {
	const digest = "@sha256:1b26826f602946860c279fce658f31050cff2c596583af237d971f4629b57792"
	for _, c := range []struct {
		parts        imageReference
		before, want string
	}{
		{imageReference{Domain: "my.io"}, "nginx", "my.io/nginx"},
		{imageReference{Domain: "my.io"}, "myregistry/foo", "my.io/myregistry/foo"},
		{imageReference{Domain: "my.io"}, "localhost:5000", "my.io/localhost:5000"},
		{imageReference{Domain: "my.io"}, "", "my.io/"},
		{imageReference{Tag: ":v2"}, "nginx:1@sha256:abc", "nginx:v2"},
		{imageReference{Tag: digest}, "r/nginx:1", "r/nginx" + digest},
		{imageReference{Domain: "a.b", Path: "c", Tag: ":d"}, "x.y/z:1", "a.b/c:d"},
	} {
		once := parseImage(c.before).With(c.parts).String()
		if once != c.want {
			t.Errorf("%+v makes %q of %q, want %q", c.parts, once, c.before, c.want)
		}
		if twice := parseImage(once).With(c.parts).String(); twice != once {
			t.Errorf("%+v makes %q of %q", c.parts, twice, once)
		}
	}
}

func TestImageValidate(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for _, c := range []struct {
		parts imageReference
		want  string // a part of the error; empty for none
	}{
		{imageReference{}, "at least one of [assignDomain, assignPath, assignTag] must be set"},
		{imageReference{Domain: "my.io"}, ""},
		{imageReference{Domain: "localhost:5000"}, ""},
		{imageReference{Domain: "registry"}, "fully-qualified domain name or localhost"},
		{imageReference{Domain: "my.io."}, "fully-qualified domain name or localhost"},
		{imageReference{Domain: "my.io:x"}, "fully-qualified domain name or localhost"},
		{imageReference{Path: "library/nginx"}, ""},
		{imageReference{Path: "a__b/c--d.e"}, ""},
		{imageReference{Path: "Library"}, "must be a valid docker image path"},
		{imageReference{Path: "a/"}, "must be a valid docker image path"},
		{imageReference{Path: "a:1"}, "must be a valid docker image path"},
		{imageReference{Path: "gcr.io/a"}, `assignDomain must be set if the first part of assignPath "gcr.io/a"`},
		{imageReference{Domain: "my.io", Path: "gcr.io/a"}, ""},
		{imageReference{Tag: ":v9"}, ""},
		{imageReference{Tag: "v9"}, "must be a valid docker image tag or digest starting with ':' or '@'"},
		{imageReference{Tag: ":" + strings.Repeat("a", 129)}, "must be a valid docker image tag"},
		{imageReference{Tag: digest}, ""},
		{imageReference{Tag: "@sha256:abc"}, "must be a valid docker image tag"},
		{imageReference{Tag: ":1" + digest}, "must be a valid docker image tag"},
	} {
		err := c.parts.Validate()
		if (c.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.parts, err, c.want)
		}
	}
}
