package transport_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// counting counts what is read of a body.
type counting struct {
	io.Reader
	read int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

// endless repeats a text for ever.
type endless struct{ text string }

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.text)
	}
	return n, nil
}

// ask sends a GET through limits to a server that answers with a body, and reads the answer.
func ask(t *testing.T, l transport.Limits, contentType string, body io.Reader) (string, error) {
	t.Helper()
	next := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body), Request: r}, nil
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://me:hidden@server:6443/api?token=hidden", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.Bounded(l)(next).RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func TestAnswersAreBounded(t *testing.T) {
	const json = "application/json"
	for name, c := range map[string]struct {
		limits      transport.Limits
		contentType string
		body        io.Reader
		most        int // bytes that are read
		want        string
	}{
		"bytes":         {transport.Limits{Bytes: 1 << 20}, json, endless{"a"}, 2 << 20, "has more than 1 MiB"},
		"the default":   {transport.Limits{}, json, endless{"a"}, 256 << 20, "has more than 128 MiB"},
		"numbers":       {transport.Limits{Decoded: 1 << 20}, json, endless{"1,"}, 1 << 20, "takes more than 1 MiB of memory"},
		"objects":       {transport.Limits{Decoded: 1 << 20}, json, endless{"{},"}, 1 << 20, "takes more than 1 MiB of memory"},
		"depth":         {transport.Limits{Decoded: 1 << 20}, json, endless{`{"":`}, 1 << 20, "takes more than 1 MiB of memory"},
		"arrays":        {transport.Limits{Decoded: 1 << 20}, json, endless{"["}, 1 << 20, "takes more than 1 MiB of memory"},
		"58 MB of ones": {transport.Limits{}, json, endless{"1,"}, 58 << 20, "takes more than 512 MiB of memory"},
		"YAML":          {transport.Limits{}, "application/yaml", endless{"- 1\n"}, 4 << 20, "has more than 2 MiB"},
		"protobuf":      {transport.Limits{}, "application/vnd.kubernetes.protobuf", endless{"\x00"}, 4 << 20, "has more than 2 MiB"},
		"no such type":  {transport.Limits{}, "application/json; garbage", endless{"- 1\n"}, 4 << 20, "has more than 2 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			body := &counting{Reader: c.body}
			_, err := ask(t, c.limits, c.contentType, body)
			want := "the answer of https://server:6443 to GET /api is not read: it " + c.want
			var size *transport.SizeError
			if !errors.As(err, &size) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
			if body.read > c.most {
				t.Errorf("%d bytes were read, want at most %d", body.read, c.most)
			}
		})
	}
	for name, text := range map[string]string{
		"an object of 1.5 MiB": "[" + strings.Repeat(`{"":{`, 250_000),
		"a page of 64 MiB":     strings.Repeat(`{"a":"`+strings.Repeat("x", 1<<20)+`"},`, 64),
	} {
		if got, err := ask(t, transport.Limits{}, "application/json;charset=utf-8", strings.NewReader(text)); err != nil || got != text {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCompressedAnswersCountAsTheyAreRead(t *testing.T) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := io.CopyN(zip, endless{"a"}, 20<<20); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}))
	defer server.Close()
	client := &http.Client{Transport: transport.Bounded(transport.Limits{Bytes: 8 << 20})(&http.Transport{})}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it is not written
	n, err := io.Copy(io.Discard, response.Body)
	var size *transport.SizeError
	if !errors.As(err, &size) || n > 9<<20 {
		t.Errorf("%d bytes of %d were read, error %v", n, packed.Len(), err)
	}
}

// slowly sends a byte whenever some time is over, until the request ends.
func slowly(every time.Duration) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		read, write := io.Pipe()
		go func() {
			for {
				select {
				case <-r.Context().Done():
					_ = write.CloseWithError(r.Context().Err())
					return
				case <-time.After(every):
					if _, err := write.Write([]byte("1")); err != nil {
						return
					}
				}
			}
		}()
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: read}, nil
	})
}

func TestAnswersEndInTime(t *testing.T) {
	silent := roundTripper(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	for name, c := range map[string]struct {
		next http.RoundTripper
		took time.Duration
		want string
	}{
		"no answer":             {silent, 2 * time.Minute, "nothing came for 2m0s"},
		"a byte a minute":       {slowly(time.Minute), 30 * time.Second, "nothing more came for 30s"},
		"a byte in ten seconds": {slowly(10 * time.Second), 10 * time.Minute, "it takes longer than 10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := read(t.Context(), c.next)
				want := "the answer of https://server to GET /api was given up: " + c.want
				if err == nil || err.Error() != want || time.Since(start) != c.took {
					t.Errorf("after %s: %v, want %s after %s", time.Since(start), err, want, c.took)
				}
			})
		})
	}
}

// TestUsersMayStopAnAnswer has the context's own error.
func TestUsersMayStopAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := read(ctx, slowly(time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

func read(ctx context.Context, next http.RoundTripper) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://server/api?hidden", nil)
	if err != nil {
		return err
	}
	response, err := transport.Bounded(transport.Limits{})(next).RoundTrip(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

func TestAnswersAreBoundedTogether(t *testing.T) {
	sent := 0
	next := roundTripper(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(strings.Repeat("{},", 1000)))}, nil
	})
	for want, total := range map[string]*transport.Total{
		"what it says is not read: it takes more than 2 requests":      {Requests: 2, Decoded: 1 << 30},
		"what it says is not read: it takes more than 1 MiB of memory": {Requests: 100, Decoded: 1 << 20},
	} {
		total.What, total.Counts = "what it says", func(r *http.Request) bool { return r.URL.Path == "/counts" }
		bound := total.Bound(next)
		ask := func(path string) error {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server"+path, nil)
			if err != nil {
				return err
			}
			response, err := bound.RoundTrip(r)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, response.Body)
			return errors.Join(err, response.Body.Close())
		}
		sent = 0
		for range 10 {
			if err := ask("/other"); err != nil {
				t.Fatal(err)
			}
		}
		for _, fails := range []bool{false, false, true, true} {
			var size *transport.SizeError
			if err := ask("/counts"); errors.As(err, &size) != fails || fails && err.Error() != want {
				t.Errorf("after %d requests: %v, want %s", sent, err, want)
			}
		}
		if sent > 14 {
			t.Errorf("%d requests were sent", sent)
		}
	}
}

func TestCauseIsWithoutTheURL(t *testing.T) {
	for _, err := range []error{
		&transport.RedirectError{From: "https://a", To: "https://b"}, &transport.SizeError{Answer: "a"}, &transport.SlowError{Answer: "a"}, io.EOF,
	} {
		if got := transport.Cause(fmt.Errorf("Get \"https://a/?hidden\": %w", err)); (got == err) == errors.Is(err, io.EOF) { //nolint:errorlint // it is this very one
			t.Errorf("%v became %v", err, got)
		}
	}
}
