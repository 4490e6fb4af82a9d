package image_test

import (
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/image"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]image.Reference{
		"":                        {},
		"nginx":                   {Path: "nginx"},
		"nginx:1.25":              {Path: "nginx", Tag: ":1.25"},
		"library/nginx":           {Path: "library/nginx"},
		"docker.io/library/nginx": {Domain: "docker.io", Path: "library/nginx"},
		"localhost/foo":           {Domain: "localhost", Path: "foo"},
		"registry:5000/foo:1":     {Domain: "registry:5000", Path: "foo", Tag: ":1"},
		"myregistry/foo":          {Path: "myregistry/foo"},
		"localhost:5000":          {Path: "localhost", Tag: ":5000"},
		"nginx@sha256:abc":        {Path: "nginx", Tag: "@sha256:abc"},
		"nginx:1@sha256:abc":      {Path: "nginx", Tag: ":1@sha256:abc"},
		"gcr.io/a/b:1":            {Domain: "gcr.io", Path: "a/b", Tag: ":1"},
		"/":                       {Path: "/"},
		":@//no image":            {Domain: ":@", Path: "/no image"},
	} {
		got := image.Parse(text)
		if got != want {
			t.Errorf("%q is read as %+v, want %+v", text, got, want)
		}
		if got.String() != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
}

func TestWith(t *testing.T) {
	const digest = "@sha256:1b26826f602946860c279fce658f31050cff2c596583af237d971f4629b57792"
	for _, c := range []struct {
		parts        image.Reference
		before, want string
	}{
		{image.Reference{Domain: "my.io"}, "nginx", "my.io/nginx"},
		{image.Reference{Domain: "my.io"}, "docker.io/library/nginx", "my.io/library/nginx"},
		{image.Reference{Domain: "my.io"}, "localhost/foo", "my.io/foo"},
		{image.Reference{Domain: "my.io"}, "registry:5000/foo:1", "my.io/foo:1"},
		{image.Reference{Domain: "my.io"}, "myregistry/foo", "my.io/myregistry/foo"},
		{image.Reference{Domain: "my.io"}, "localhost:5000", "my.io/localhost:5000"},
		{image.Reference{Domain: "my.io"}, "", "my.io/"},
		{image.Reference{Tag: ":v2"}, "nginx:1@sha256:abc", "nginx:v2"},
		{image.Reference{Tag: digest}, "r/nginx:1", "r/nginx" + digest},
		{image.Reference{Path: "lib/x"}, "gcr.io/a/b:1", "gcr.io/lib/x:1"},
		{image.Reference{Domain: "a.b", Path: "c", Tag: ":d"}, "x.y/z:1", "a.b/c:d"},
	} {
		once := image.Parse(c.before).With(c.parts).String()
		if once != c.want {
			t.Errorf("%+v makes %q of %q, want %q", c.parts, once, c.before, c.want)
		}
		if twice := image.Parse(once).With(c.parts).String(); twice != once {
			t.Errorf("%+v makes %q of %q", c.parts, twice, once)
		}
	}
}

func TestValidate(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for _, c := range []struct {
		parts image.Reference
		want  string // a part of the error; empty for none
	}{
		{image.Reference{}, "at least one of [assignDomain, assignPath, assignTag] must be set"},
		{image.Reference{Domain: "my.io"}, ""},
		{image.Reference{Domain: "a.b.c:5000"}, ""},
		{image.Reference{Domain: "localhost"}, ""},
		{image.Reference{Domain: "localhost:5000"}, ""},
		{image.Reference{Domain: "registry"}, "fully-qualified domain name or localhost"},
		{image.Reference{Domain: "registry:5000"}, "fully-qualified domain name or localhost"},
		{image.Reference{Domain: "my.io."}, "fully-qualified domain name or localhost"},
		{image.Reference{Domain: "my.io/"}, "fully-qualified domain name or localhost"},
		{image.Reference{Domain: "https://my.io"}, "fully-qualified domain name or localhost"},
		{image.Reference{Domain: "my.io:x"}, "fully-qualified domain name or localhost"},
		{image.Reference{Path: "library/nginx"}, ""},
		{image.Reference{Path: "a__b/c--d.e"}, ""},
		{image.Reference{Path: "a.b"}, ""},
		{image.Reference{Path: "Library"}, "must be a valid docker image path"},
		{image.Reference{Path: "a/"}, "must be a valid docker image path"},
		{image.Reference{Path: "a//b"}, "must be a valid docker image path"},
		{image.Reference{Path: "a:1"}, "must be a valid docker image path"},
		{image.Reference{Path: "gcr.io/a"}, `assignDomain must be set if the first part of assignPath "gcr.io/a"`},
		{image.Reference{Path: "localhost/a"}, "assignDomain must be set"},
		{image.Reference{Domain: "my.io", Path: "gcr.io/a"}, ""},
		{image.Reference{Tag: ":v9"}, ""},
		{image.Reference{Tag: "v9"}, "must be a valid docker image tag or digest starting with ':' or '@'"},
		{image.Reference{Tag: ":"}, "must be a valid docker image tag"},
		{image.Reference{Tag: ":" + strings.Repeat("a", 129)}, "must be a valid docker image tag"},
		{image.Reference{Tag: digest}, ""},
		{image.Reference{Tag: "@sha256:abc"}, "must be a valid docker image tag"},
		{image.Reference{Tag: ":1" + digest}, "must be a valid docker image tag"},
	} {
		err := c.parts.Validate()
		if (c.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.parts, err, c.want)
		}
	}
}
