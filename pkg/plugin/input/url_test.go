package input

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestURLs(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request left for a host that was not typed")
	}))
	defer elsewhere.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/a.yaml", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") != "" {
			t.Error("a cookie was sent")
		}
		fmt.Fprint(w, "# c\n"+header+"metadata: {name: a}\n")
	})
	mux.Handle("/moved", http.RedirectHandler("/a.yaml", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.Handle("/away", http.RedirectHandler(elsewhere.URL+"/token", http.StatusFound))
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("a: b\n#\n", 5000)) })
	server := httptest.NewServer(mux)
	defer server.Close()
	withPassword := strings.Replace(server.URL, "http://", "http://me:secret@", 1)

	cases := []struct{ name, url, want string }{
		{"a file", server.URL + "/a.yaml", server.URL + "/a.yaml:2: ConfigMap a\n"},
		{"a redirect inside the host", server.URL + "/moved", server.URL + "/moved:2: ConfigMap a\n"},
		{"a redirect that never ends", server.URL + "/loop", "error: " + server.URL + "/loop: stopped after 10 redirects\n"},
		{
			"a redirect to another host", server.URL + "/away",
			"error: " + server.URL + "/away: " + server.URL + " redirects a GET request to " + elsewhere.URL + ", which is not followed: requests and credentials stay with the host, port and scheme that you named; name the other one if you trust it\n",
		},
		{"nothing there", server.URL + "/none", "error: " + server.URL + "/none: the server answered 404 Not Found\n"},
		{"more than the limit", server.URL + "/large", "error: " + server.URL + "/large:1: the document is larger than 16384 bytes: split it with --- lines, or lists into their elements\n"},
		{"a password", withPassword + "/none", "error: " + strings.Replace(withPassword, "me:secret", "xxxxx", 1) + "/none: the server answered 404 Not Found\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := report(&Reader{MaxDocument: 16384}, Files{Paths: []string{c.url}, URLs: true})
			if got != c.want {
				t.Errorf("read\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestURLsNotAllowed(t *testing.T) {
	_, err := new(Reader).ReadAll(context.Background(), Files{Paths: []string{"http://me:secret@127.0.0.1:1/a.yaml"}})
	var located *Error
	if !errors.As(err, &located) || located.Path != "http://xxxxx@127.0.0.1:1/a.yaml" {
		t.Errorf("error %v, want one that names the URL without its password", err)
	}
}
