package redact_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// live is an object as a server keeps it.
func live() map[string]any {
	return map[string]any{
		"kind": "Pod",
		"metadata": map[string]any{
			"name": "web", "uid": "u", "resourceVersion": "1", "generation": int64(1), "creationTimestamp": "t",
			"managedFields": []any{"m"}, "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "{}"},
		},
		"status": map[string]any{"phase": "Running"},
	}
}

func TestTrim(t *testing.T) {
	metadata := func(more map[string]any) map[string]any {
		more["name"] = "web"
		return more
	}
	annotations := live()["metadata"].(map[string]any)["annotations"]
	status := fieldpath.MakePathOrDie("status", "phase")
	for _, c := range []struct {
		why    string
		detail redact.Detail
		fields []engine.FieldChange
		want   map[string]any
	}{
		{"stored", redact.Stored, nil, map[string]any{
			"kind": "Pod", "metadata": metadata(map[string]any{"uid": "u", "creationTimestamp": "t", "annotations": annotations}),
			"status": map[string]any{"phase": "Running"},
		}},
		{"configured", redact.Configured, nil, map[string]any{
			"kind": "Pod", "metadata": metadata(map[string]any{"uid": "u", "creationTimestamp": "t", "annotations": annotations}),
		}},
		{"readable", redact.Readable, nil, map[string]any{"kind": "Pod", "metadata": metadata(map[string]any{})}},
		{"what changes is never left out", redact.Readable, []engine.FieldChange{{Path: status}}, map[string]any{
			"kind": "Pod", "metadata": metadata(map[string]any{}), "status": map[string]any{"phase": "Running"},
		}},
	} {
		object := live()
		got := redact.Trim(&unstructured.Unstructured{Object: object}, c.fields, c.detail)
		if diff := cmp.Diff(c.want, got.Object); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.why, diff)
		}
		if diff := cmp.Diff(live(), object); diff != "" {
			t.Errorf("%s: the object is modified:\n%s", c.why, diff)
		}
	}
	if redact.Trim(nil, nil, redact.Readable) != nil {
		t.Error("something is made of no object")
	}
}

// secretChange replaces the value of a Secret, or removes it.
func secretChange(kind engine.ChangeKind) (*engine.Change, *engine.FieldChange) {
	of := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "data": map[string]any{"password": value},
		}}
	}
	c := &engine.Change{Before: of("YS12ZXJ5LWxvbmctcGFzc3dvcmQ="), After: of("YW5vdGhlci1sb25nLXBhc3N3b3Jk")}
	f := engine.FieldChange{Path: fieldpath.MakePathOrDie("data", "password"), Kind: kind, From: "YS12ZXJ5LWxvbmctcGFzc3dvcmQ=", To: "YW5vdGhlci1sb25nLXBhc3N3b3Jk"}
	if kind == engine.Removed {
		delete(c.After.Object, "data")
		f.To = nil
	}
	c.Fields = []engine.FieldChange{f}
	return c, &c.Fields[0]
}

func TestChangeMasksSecrets(t *testing.T) {
	for _, kind := range []engine.ChangeKind{engine.Replaced, engine.Removed} {
		c, f := secretChange(kind)
		f.Kind = kind
		got := redact.Change(c)
		if from, to := got.Fields[0].From, got.Fields[0].To; from == f.From || to == f.To && to != nil || from == to {
			t.Errorf("%s: shown from %v to %v", kind, from, to)
		}
		if diff := cmp.Diff(got.Before.Object, c.Before.Object); diff == "" {
			t.Errorf("%s: the state before is not masked", kind)
		}
		if diff := cmp.Diff(got.Before.Object, got.After.Object); diff == "" {
			t.Errorf("%s: masked, the states look alike", kind)
		}
	}
}

// Wherever a name was made of a Secret, what is recorded has no such name, and can be read again: its fields
// are in its states.
func TestPartialHidesNames(t *testing.T) {
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "shop", Name: "c", UID: "u"}
	before := diff.Part{"data": map[string]any{"kept": "a", "s3cret": "b"}, "s3cret": "c", "metadata": map[string]any{"s3cret": "d", "labels": map[string]any{"a": "1"}}}
	after := diff.Part{"data": map[string]any{"kept": "b"}, "metadata": map[string]any{"annotations": map[string]any{"s3cret": "x"}, "labels": map[string]any{"a": "2"}}}
	field := func(kind engine.ChangeKind, from int, path ...any) engine.FieldChange {
		return engine.FieldChange{Path: fieldpath.MakePathOrDie(path...), Kind: kind, Secret: from > 0, SecretFrom: from}
	}
	for name, c := range map[string]struct {
		fields []engine.FieldChange
		want   []string
	}{
		"of the object":   {[]engine.FieldChange{field(engine.Removed, 1, "s3cret")}, []string{`replaced ["***"]`}},
		"in metadata":     {[]engine.FieldChange{field(engine.Replaced, 0, "metadata", "labels", "a"), field(engine.Removed, 2, "metadata", "s3cret")}, []string{"replaced metadata.labels.a", `replaced metadata["***"]`}},
		"two in metadata": {[]engine.FieldChange{field(engine.Added, 2, "metadata", "annotations"), field(engine.Removed, 2, "metadata", "s3cret")}, []string{`replaced metadata["***"]`}},
		"a map below it":  {[]engine.FieldChange{field(engine.Added, 3, "metadata", "annotations", "s3cret")}, []string{"added metadata.annotations"}},
		"a map":           {[]engine.FieldChange{field(engine.Replaced, 0, "data", "kept"), field(engine.Removed, 2, "data", "s3cret")}, []string{"replaced data"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := redact.Partial(diff.Partial{Before: before, After: after, Fields: c.fields}, key)
			var got []string
			for _, f := range p.Fields {
				got = append(got, string(f.Kind)+" "+engine.PathString(f.Path))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("fields: -want +got:\n%s", diff)
			}
			if err := p.Validate(); err != nil {
				t.Errorf("what is recorded cannot be read: %v", err)
			}
			if err := p.ValidateShown(); err != nil {
				t.Errorf("what is recorded is not shown: %v", err)
			}
		})
	}
}

// What may be secret of a change is masked, whichever way it is known to be; a change without any of it stays
// as it is.
func TestPartialMasks(t *testing.T) {
	for name, c := range map[string]struct {
		kind   string
		secret bool
		masked bool
	}{
		"nothing":     {"ConfigMap", false, false},
		"a Secret":    {"Secret", false, true},
		"made of one": {"ConfigMap", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: c.kind}, Version: "v1", Namespace: "shop", Name: "c"}
			value := func(v string) diff.Part { return diff.Part{"data": map[string]any{"pw": v}} }
			p := redact.Partial(diff.Partial{Before: value("a"), After: value("hunter2hunter2"), Fields: []engine.FieldChange{
				{Path: fieldpath.MakePathOrDie("data", "pw"), Kind: engine.Replaced, From: "a", To: "hunter2hunter2", Secret: c.secret},
			}}, key)
			got := p.After["data"].(map[string]any)["pw"] != "hunter2hunter2"
			if got != c.masked || p.Fields[0].Withheld != c.masked || (p.Fields[0].To != "hunter2hunter2") != c.masked {
				t.Errorf("masked: %v, want %v: %+v", got, c.masked, p)
			}
		})
	}
}

func TestURL(t *testing.T) {
	for address, want := range map[string]string{
		"https://example.com/a%2Fb?ref=v1&x":                                                  "https://example.com/a%2Fb?ref=v1&x",
		"https://me:hidden@example.com/p.yaml":                                                "https://xxxxx@example.com/p.yaml",
		"https://ghp_hidden@example.com/p.yaml":                                               "https://xxxxx@example.com/p.yaml",
		"https://example.com/p.yaml?ref=v1&token=hidden":                                      "https://example.com/p.yaml?ref=v1&token=xxxxx",
		"https://example.com/?private_token=hidden&ref=a":                                     "https://example.com/?private_token=xxxxx&ref=a",
		"https://s3.example.com/?X-Amz-Signature=hidden&X-Amz-Credential=hidden&X-Amz-Date=1": "https://s3.example.com/?X-Amz-Signature=xxxxx&X-Amz-Credential=xxxxx&X-Amz-Date=1",
		"https://blob.example.com/p?sv=1&sig=hidden":                                          "https://blob.example.com/p?sv=1&sig=xxxxx",
		"p?token=file":       "p?token=file",
		"app=web,token!=x":   "app=web,token!=x",
		"https://%zz?token=": "https://%zz?token=",
	} {
		if got := redact.URL(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}

func TestEscapeWorkflowCommands(t *testing.T) {
	for text, want := range map[string]string{
		"::error ::x":           `\x3a:error ::x`,
		" \u00a0 ::add-mask::x": " \u00a0 " + `\x3a:add-mask::x`,
		"a\n  ::error::x\n":     "a\n  " + `\x3a:error::x` + "\n",
		"a ##[error]x":          `a #\x23[error]x`,
		"###[error]x":           `##\x23[error]x`,
		"::1 localhost":         "::1 localhost",
		":: a comment":          ":: a comment",
		"std::string::npos":     "std::string::npos",
		"a # b ## c [d]":        "a # b ## c [d]",
	} {
		if got := redact.EscapeLines(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got := redact.EscapeLines(redact.EscapeLines(text)); got != want {
			t.Errorf("%q: escaped twice: got %q", text, got)
		}
	}
}

// Programs get what a runner would take for a command as it is, and nothing that acts
// on a terminal.
func TestEscape(t *testing.T) {
	for _, c := range []struct{ text, keep, want string }{
		{"::error::x ##[error]", "", "::error::x ##[error]"},
		{"a\tb\nc", "\n\t", "a\tb\nc"},
		{"a\tb\nc\r", "", `a\tb\nc\x0d`},
		{"\x1b[2J\u202e\u2028\ufffd\xff", "", `\x1b[2J\u202e\u2028` + "\ufffd" + `\xff`},
		{"Grüße", "", "Grüße"},
	} {
		if got := redact.Escape(c.text, c.keep); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

func TestWriter(t *testing.T) {
	for text, want := range map[string]string{
		"error: a\nNext: b\n  c\n\nwarning: d\n": "error: a\n  Next: b\n  c\n\n  warning: d\n",
		"note: a\nNext: b\n":                     "note: a\n  Next: b\n",
		"warning: a\rb\n":                        "warning: a\\x0db\n",
		"NAME\na\nb\n":                           "NAME\na\nb\n",
		"a\n\x1b[2J\n::error::x\n":               "a\n\\x1b[2J\n\\x3a:error::x\n",
	} {
		var out strings.Builder
		if _, err := io.WriteString(redact.NewWriter(&out), text); err != nil || out.String() != want {
			t.Errorf("%q: got %q, %v; want %q", text, out.String(), err, want)
		}
	}
	r, w := io.Pipe()
	r.CloseWithError(errors.New("no reader"))
	if n, err := io.WriteString(redact.NewWriter(w), "a"); n != 0 || err == nil {
		t.Errorf("a broken pipe: %d, %v", n, err)
	}
}
