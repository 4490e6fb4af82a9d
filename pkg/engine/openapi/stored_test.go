package openapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

func one(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	return conformance.ReadObjects(t, text)[0]
}

// What a server makes of every kind is compared with it in test/e2e; these are the rules.
func TestDecode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"zero values and empty maps and lists go": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {}, finalizers: []}, binaryData: {}, immutable: false}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: false}`,
		},
		"quantities are canonical": {
			`{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {a: "0.5", b: 2, c: 1024Mi, d: 1500m, e: 0.0001, f: bad}}}`,
			`{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {a: 500m, b: "2", c: 1Gi, d: 1500m, e: 1m, f: bad}}, status: {}}`,
		},
		"stringData is data": {
			`{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: YQ==, b: Yg==}, stringData: {a: other}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: a}, type: Opaque, data: {a: b3RoZXI=, b: Yg==}}`,
		},
		"other kinds stay": {
			`{apiVersion: example.org/v1, kind: Thing, metadata: {name: a}, spec: {a: null, b: false, c: []}}`,
			`{apiVersion: example.org/v1, kind: Thing, metadata: {name: a}, spec: {a: null, b: false, c: []}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, want := one(t, c.in), one(t, c.want)
			got := openapi.AsStored(in)
			if d := cmp.Diff(want.Object, got.Object); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(one(t, c.in).Object, in.Object); d != "" {
				t.Errorf("the object was modified: %s", d)
			}
			if openapi.AsStored(got) != got {
				t.Error("the result is not its own form")
			}
		})
	}
}

func TestFromSchema(t *testing.T) {
	t.Parallel()
	form := openapi.StoredTypeOf(one(t, `
type: object
properties:
  spec:
    type: object
    default: {}
    properties:
      size: {type: integer, default: 3}
      kept: {type: boolean}
      list: {type: array, items: {type: object, properties: {a: {type: string, default: x}}}}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      null-is-a-value: {type: string, nullable: true, default: x}
      labels: {type: object, additionalProperties: {type: string}}
`).Object)
	got := form.Object(one(t, `{metadata: {name: a}, other: 1, spec: {kept: false, size: null, list: [{b: 1}], free: {a: 1}, null-is-a-value: null, labels: {}, x: 1}}`)).Object
	want := one(t, `{metadata: {name: a}, spec: {kept: false, size: 3, list: [{a: x}], free: {a: 1}, null-is-a-value: null, labels: {}}}`).Object
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(one(t, `{spec: {size: 3, null-is-a-value: x}}`).Object, form.Object(&unstructured.Unstructured{Object: map[string]any{}}).Object); d != "" {
		t.Error(d)
	}
}
