package structured_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
)

// A report says the same as JSON and as YAML, with no, one or several elements.
func TestReportWriter(t *testing.T) {
	for _, elements := range [][]any{{}, {"a"}, {map[string]any{"b": "c\nd"}, "e"}} {
		want := map[string]any{
			"apiVersion": "mutate.kubectl.dev/v1alpha1", "kind": "Report", "context": map[string]any{"server": "s"},
			"things": elements, "summary": map[string]any{"n": 1.0},
		}
		for _, asYAML := range []bool{false, true} {
			var out bytes.Buffer
			r := structured.NewReportWriter(&out, asYAML, structured.Head{Kind: "Report", List: "things", Context: output.Context{Server: "s"}})
			for _, e := range elements {
				if err := r.Add(e); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Close(map[string]any{"n": 1}); err != nil {
				t.Fatal(err)
			}
			read := json.Unmarshal
			if asYAML {
				read = func(text []byte, into any) error { return yaml.Unmarshal(text, into) }
			}
			var got map[string]any
			if err := read(out.Bytes(), &got); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("as YAML %v: -want +got:\n%s", asYAML, diff)
			}
		}
	}
}

// full is a disk on which there is no more room.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestReportWriterFails(t *testing.T) {
	if err := structured.NewReportWriter(full{}, false, structured.Head{}).Add("a"); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
	if err := structured.NewReportWriter(full{}, true, structured.Head{}).Close(nil); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
	if err := structured.NewReportWriter(io.Discard, false, structured.Head{}).Add(func() {}); err == nil {
		t.Error("what is no value was written")
	}
}

func TestWriteListNeverNull(t *testing.T) {
	for asYAML, want := range map[bool]string{
		true:  "apiVersion: mutate.kubectl.dev/v1alpha1\nitems: []\nkind: L\n",
		false: "{\n    \"apiVersion\": \"mutate.kubectl.dev/v1alpha1\",\n    \"kind\": \"L\",\n    \"items\": []\n}\n",
	} {
		var out bytes.Buffer
		if err := structured.WriteList[string](&out, asYAML, "L", nil); err != nil || out.String() != want {
			t.Errorf("got %v, %q; want %q", err, out.String(), want)
		}
	}
}

func TestMarshalLine(t *testing.T) {
	got, err := structured.MarshalLine(map[string]any{"a": "<b>\u202e\n"})
	if want := `{"a":"<b>\u202e\n"}` + "\n"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestMarshalLineObjectKey(t *testing.T) {
	key := engine.ObjectKey{Version: "v1", Namespace: "n", Name: "a", UID: "u", Subresource: "status"}
	key.Group, key.Kind = "apps", "Deployment"
	const want = `{"apiVersion":"apps/v1","kind":"Deployment","subresource":"status","namespace":"n","name":"a","uid":"u"}` + "\n"
	if got, err := structured.MarshalLine(key); err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}
