package redact_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

func learned() *redact.Masker {
	m := &redact.Masker{}
	m.Learn(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"stringData": map[string]any{
			"password": "hunter22\n", "pin": "abc", "flag": "true", "digit": "1",
			"quoted": `say "please"`, "short": "abcdef", "long": "abcdefghijkl", "huge": strings.Repeat("x", 1000),
		},
	}})
	return m
}

func TestText(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a value inside a text", "url=hunter22!", "url=***!"},
		{"its base64", "aHVudGVyMjIK", "***"},
		{"a value in a JSON text", `{"a":"say \"please\""}`, `{"a":"***"}`},
		{"the longer of two values", "abcdefghijkl", "***"},
		{"a short value that is the whole text", "abc", "***"},
		{"a short value inside a text", "an abc", "an abc"},
		{"a trivial value", "true", "true"},
		{"a value of one byte", "1", "1"},
		{"a value longer than what is kept of it", strings.Repeat("x", 1000) + "!", "***!"},
		{"something else", "hunter2", "hunter2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := learned().Text(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMaskerError(t *testing.T) {
	cause := errors.New("bad hunter22")
	err := learned().Error(cause)
	if err.Error() != "bad ***" || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestMaskerObjectIsShared(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"kind": "ConfigMap", "metadata": map[string]any{"name": "hunter22"}, "data": map[string]any{"a": "b"},
	}}
	if got := learned().Object(u); got != u {
		t.Errorf("got a copy: %v", got)
	}
	u.Object["data"] = map[string]any{"list": []any{"hunter22", int64(3)}}
	got := learned().Object(u)
	if got.Object["data"].(map[string]any)["list"].([]any)[0] != redact.Mask {
		t.Errorf("not masked: %v", got)
	}
	if u.Object["data"].(map[string]any)["list"].([]any)[0] != "hunter22" {
		t.Error("the object given was modified")
	}
}

func TestMaskerNil(t *testing.T) {
	var m *redact.Masker
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "data": map[string]any{"a": "Yg=="}}}
	m.Learn(u)
	if m.Object(u) != u || m.Text("x") != "x" || m.Reader(nil) != nil {
		t.Error("something changed")
	}
}
