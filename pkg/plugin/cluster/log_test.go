package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// What is base64 below is "hunter2-hunter2".
func TestLogRequestsMasksBodies(t *testing.T) {
	const encoded, clear = "aHVudGVyMi1odW50ZXIy", "hunter2-hunter2"
	for name, c := range map[string]struct {
		path, body string
		want       string // a part of the text
	}{
		"a Secret":              {"/api/v1/namespaces/shop/secrets/s", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"password":"` + encoded + `"}}`, `"data":{"password":"***"}`},
		"a Secret in clear":     {"/api/v1/namespaces/shop/secrets/s", `{"apiVersion":"v1","kind":"Secret","stringData":{"password":"` + clear + `"}}`, `"stringData":{"password":"***"}`},
		"a list of Secrets":     {"/api/v1/secrets", `{"apiVersion":"v1","kind":"SecretList","items":[{"metadata":{"name":"s"},"data":{"password":"` + encoded + `"}}]}`, `"metadata":{"name":"s"}`},
		"a Secret in a list":    {"/api/v1/all", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Secret","data":{"password":"` + encoded + `"}}]}`, `"password":"***"`},
		"a Secret in an object": {"/apis/example.com/v1/backups/b", `{"kind":"Backup","spec":{"object":{"apiVersion":"v1","kind":"Secret","data":{"password":"` + encoded + `"}}}}`, `"password":"***"`},
		"a copy of its value":   {"/api/v1/configmaps", `{"kind":"List","items":[{"apiVersion":"v1","kind":"Secret","data":{"password":"` + encoded + `"}},{"kind":"ConfigMap","data":{"url":"db:` + clear + `@host"}}]}`, `"url":"db:***@host"`},
		"a merge patch":         {"/api/v1/namespaces/shop/secrets/s", `{"data":{"password":"` + encoded + `"}}`, `{"data":{"password":"***"}}`},
		"a JSON patch":          {"/api/v1/namespaces/shop/secrets/s", `[{"op":"add","path":"/data/password","value":"` + encoded + `"}]`, `"path":"/data/password","value":"***"`},
		"a refusal":             {"/api/v1/namespaces/shop/secrets/s", `{"kind":"Status","reason":"Invalid","code":422,"message":"data: ` + clear + `","details":{"causes":[{"message":"` + clear + `"}]}}`, `"reason":"Invalid"`},
		"a token review":        {"/apis/authentication.k8s.io/v1/tokenreviews", `{"kind":"TokenReview","spec":{"token":"` + clear + `"}}`, `***`},
		"a token request":       {"/api/v1/namespaces/shop/serviceaccounts/a/token", `{"kind":"TokenRequest","status":{"token":"` + clear + `"}}`, `***`},
		"no JSON":               {"/openapi/v2", "k8s\x00 " + clear, "[20 bytes that are not JSON]"},
		"what policies made":    {"/api/v1/namespaces/shop/configmaps/c", `{"kind":"ConfigMap","data":{"user":"derived-from-a-secret"}}`, `"user":"***"`},
		"large numbers":         {"/api/v1/namespaces/shop/configmaps/c", `{"kind":"ConfigMap","size":9007199254740993}`, `9007199254740993`},
	} {
		t.Run(name, func(t *testing.T) {
			known := &redact.Masker{}
			known.LearnValue("derived-from-a-secret")
			log := &requestLog{level: 10, known: known, seen: &redact.Masker{}}
			got := log.text(httptest.NewRequest(http.MethodGet, c.path, nil), []byte(c.body))
			if !strings.Contains(got, c.want) || strings.Contains(got, encoded) || strings.Contains(got, clear) {
				t.Errorf("got %s\nwant %s in it, and no value of a Secret", got, c.want)
			}
		})
	}
}

// The headers of an answer quote nothing of a Secret, and do not tell how long it is.
func TestLogRequestsMasksHeaders(t *testing.T) {
	used, _ := engine.WatchSecrets(t.Context())
	engine.NoteSecret(used)
	header := http.Header{}
	for _, name := range []string{"Content-Length", "Content-Location", "Etag", "Location", "Warning", "X-Whatever"} {
		header[name] = []string{"told", "told again"}
	}
	header["Content-Type"] = []string{"application/json"}
	for name, c := range map[string]struct {
		context context.Context
		path    string
		want    bool
	}{
		"what a Secret decides": {used, "/api/v1/namespaces/shop/configmaps/c", false},
		"a Secret":              {t.Context(), "/api/v1/namespaces/shop/secrets/s", false},
		"anything else":         {t.Context(), "/api/v1/namespaces/shop/configmaps/c", true},
	} {
		t.Run(name, func(t *testing.T) {
			log := &requestLog{level: 10, known: &redact.Masker{}, seen: &redact.Masker{}}
			got := log.headers(httptest.NewRequestWithContext(c.context, http.MethodGet, c.path, nil), header)
			if strings.Contains(got, "told") != c.want || !strings.Contains(got, "Content-Type: application/json") || !strings.Contains(got, "Etag") {
				t.Errorf("logged:\n%s", got)
			}
		})
	}
	if header.Get("Etag") != "told" {
		t.Error("the answer itself has other headers")
	}
}

func TestLogRequestsLevels(t *testing.T) {
	for level, want := range map[int]string{
		6:  `Response|status="200 OK"`,
		7:  `Request|Accept: x|Authorization: <masked>|Response`,
		8:  `Request|Request Body: {"kind":"ConfigMap"}|Response|Audit-Id: 1|Set-Cookie: <masked>|Response Body: {"data":"aaa|[truncated 1981 chars]`,
		9:  `Response Body: {"data":"aaa|"kind":"ConfigMap"}`,
		10: `Response Body: {"data":"aaa|"kind":"ConfigMap"}`,
	} {
		t.Run(fmt.Sprint(level), func(t *testing.T) {
			text := logged(t, level)
			rest := text
			for _, part := range strings.Split(want, "|") {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Fatalf("no %q, or not there, in\n%s", part, text)
				}
				rest = after
			}
			if strings.Contains(text, "s3cret") || level < logBodies && strings.Contains(text, "Body") {
				t.Errorf("logged:\n%s", text)
			}
		})
	}
}

// logged returns what one request with a token logs.
func logged(t *testing.T, level int) string {
	t.Helper()
	answer := `{"data":"` + strings.Repeat("a", 2975) + `","kind":"ConfigMap"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != `{"kind":"ConfigMap"}` {
			t.Errorf("sent %s, %v", body, err)
		}
		w.Header().Set("Audit-Id", "1")
		w.Header().Set("Set-Cookie", "id=s3cret")
		fmt.Fprint(w, answer)
	}))
	defer server.Close()
	var text bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&text)
	defer klog.SetOutput(io.Discard)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL+"/api/v1/namespaces/shop/configmaps/c", strings.NewReader(`{"kind":"ConfigMap"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer s3cret")
	r.Header.Set("Accept", "x")
	response, err := LogRequests(level, &redact.Masker{})(http.DefaultTransport).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != answer {
		t.Errorf("received %s, %v", body, err)
	}
	return text.String()
}

func TestLogRequestsMasksURLs(t *testing.T) {
	known := &redact.Masker{}
	known.LearnValue("hunter2/hunter2==")
	log := &requestLog{known: known, seen: &redact.Masker{}}
	for text, want := range map[string]string{
		"http://server/api?q=hunter2%2Fhunter2%3D%3D":     "http://server/api?q=***",
		"http://server/api/hunter2%2fhunter2==/x":         "http://server/api/***/x",
		"http://server/api?labelSelector=app%3Dweb&x=%2F": "http://server/api?labelSelector=app%3Dweb&x=%2F",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := log.url(&http.Request{URL: u}); got != want {
			t.Errorf("%s is logged as %s, want %s", text, got, want)
		}
	}
}

// An answer that is cut short is as broken for its reader as without the log.
func TestLogRequestsKeepsTheErrorOfABody(t *testing.T) {
	broken := errors.New("cut short")
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	next := answers(func() (*http.Response, error) {
		return &http.Response{Status: "200 OK", Body: io.NopCloser(io.MultiReader(strings.NewReader(`{"kind`), failing{broken}))}, nil
	})
	r := httptest.NewRequest(http.MethodGet, "http://server/api", nil)
	response, err := LogRequests(8, &redact.Masker{})(next).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(response.Body); string(body) != `{"kind` || !errors.Is(err, broken) {
		t.Errorf("read %q, %v", body, err)
	}
}

type answers func() (*http.Response, error)

func (a answers) RoundTrip(*http.Request) (*http.Response, error) { return a() }
