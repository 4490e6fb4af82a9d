package external

import (
	"net/http"
	"net/url"
	"testing"
)

func TestBlobsMayBeStoredElsewhere(t *testing.T) {
	const blob = "https://ghcr.io/v2/team/app/blobs/sha256:0123"
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{blob, "https://storage.example.com/x?signature=s", true},
		{blob, "https://storage.example.com:443/x", true},
		{blob, "http://storage.example.com/x", false},
		{blob, "https://storage.example.com:8443/x", false},
		{blob, "https://169.254.169.254/latest", false},
		{blob, "https://[fd00:ec2::254]/latest", false},
		{blob, "https://me:hidden@storage.example.com/x", false},
		{"http://ghcr.io/v2/team/app/blobs/sha256:0123", "https://storage.example.com/x", false},
		{"https://ghcr.io/v2/team/app/manifests/v1", "https://storage.example.com/x", false},
		{"https://ghcr.io/v2/team/app/blobs/uploads", "https://storage.example.com/x", false},
		{"https://ghcr.io/v2/", "https://storage.example.com/x", false},
	} {
		from, to := parse(t, c.from), parse(t, c.to)
		if got := isStorage(&http.Request{URL: from}, to); got != c.want {
			t.Errorf("from %s to %s: %t", c.from, c.to, got)
		}
	}
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
