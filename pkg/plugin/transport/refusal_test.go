package transport_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// refusalOf is what a client reads of an answer.
func refusalOf(t *testing.T, code int, media, body string) (string, error) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}))
	defer s.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.Bounded(transport.Limits{})(http.DefaultTransport).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// Of what a server says of an error, the beginning is kept, and no part of a word.
func TestRefusalsAreShort(t *testing.T) {
	words := strings.Repeat("secretword ", 20_000)
	status := func(message, more string) string {
		text, err := json.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{"continue":"next"},"status":"Failure","message":%s,"reason":"Expired","code":410%s}`, text, more)
	}
	cause := `{"reason":"x","message":"` + words[:55_000] + `","field":"spec.` + words[:11_000] + `"}`
	for name, c := range map[string]struct {
		code        int
		media, body string
		most        int
		has         []string
	}{
		"a status":             {410, "application/json", status("first "+words+"last", ""), 5_000, []string{`"first secretword`, ` secretword ..."`, `"continue":"next"`, `"reason":"Expired"`}},
		"one word":             {410, "", status(strings.Repeat("x", 100_000), ""), 300, []string{`" ..."`}},
		"many causes":          {422, "application/json", status("m", `,"details":{"name":"`+words+`","causes":[`+strings.Repeat(cause+",", 200)+cause+"]}"), 1_000_000, []string{`"causes":[{"reason":"x"`}},
		"a text":               {502, "text/html", "<html>" + words + "</html>", 5_000, []string{"<html>secretword ", " secretword ..."}},
		"a text of any answer": {200, "text/plain", words, len(words), []string{words}},
		"JSON of an answer":    {200, "application/json", status(words, ""), 1 << 20, []string{words}},
		"a short status":       {404, "application/json", status("not there", ""), 300, []string{status("not there", "")}},
	} {
		got, err := refusalOf(t, c.code, c.media, c.body)
		if err != nil || len(got) > c.most {
			t.Errorf("%s: %d bytes, want at most %d, %v", name, len(got), c.most, err)
		}
		for _, text := range c.has {
			if !strings.Contains(got, text) {
				t.Errorf("%s: %.60q is not in %.300q", name, text, got)
			}
		}
		for _, word := range strings.Fields(got) {
			if cut := strings.Trim(word, `"<>/html{}[],:`); c.has != nil && strings.HasPrefix("secretword", cut) && len(cut) > 3 && cut != "secretword" {
				t.Errorf("%s: the word is cut: %q", name, word)
			}
		}
	}
	if _, err := refusalOf(t, 500, "application/json", status(strings.Repeat(words, 100), "")); !transport.IsLimit(err) {
		t.Errorf("22 MB: %v", err)
	}
}
