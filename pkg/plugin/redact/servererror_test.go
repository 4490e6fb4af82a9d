package redact

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func TestServerError(t *testing.T) {
	invalid := func(errs ...*field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "s", errs)
	}
	status := func(message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Message: message}}
	}
	spec := field.NewPath("spec")
	const secret = `{"apiVersion":"v1","data":{"a":"aHVudGVyMg=="},"kind":"Secret"}`
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{
			"a strict patch of a Secret",
			invalid(field.Invalid(field.NewPath("patch"), secret, `strict decoding error: unknown field "bogus"`)),
			`patch: Invalid value: strict decoding error: unknown field "bogus"`,
		},
		{
			"the same without causes",
			status(`Secret "s" is invalid: patch: Invalid value: "{\"data\":{\"a\":\"aHVudGVyMg==\"}}": strict decoding error: unknown field`),
			"strict decoding error: unknown field",
		},
		{
			"a value as JSON",
			invalid(field.Invalid(spec.Child("template"), map[string]any{"a": "aHVudGVyMg=="}, "field is immutable")),
			"spec.template: Invalid value: field is immutable",
		},
		{
			"a value as a Go struct",
			invalid(field.Invalid(spec, struct{ C chan int }{}, "field is immutable")),
			"spec: Invalid value: field is immutable",
		},
		{
			"a list of values",
			invalid(field.Invalid(spec, []string{"hunter2"}, "too short")),
			"spec: Invalid value: too short",
		},
		{
			"a number",
			invalid(field.Invalid(spec.Child("replicas"), -1, "must be greater than or equal to 0")),
			"spec.replicas: Invalid value: must be greater than or equal to 0",
		},
		{
			"a diff of internal names",
			invalid(field.Forbidden(spec, "pod updates may not change fields other than `spec.containers[*].image`\n  core.PodSpec{\n-  x: \"hunter2\"")),
			"spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`",
		},
		{
			"several",
			invalid(field.Required(spec.Child("a"), ""), field.Duplicate(spec.Child("b"), "hunter2")),
			"spec.a: Required value; spec.b: Duplicate value",
		},
		{"an object that is cut off", status(`cannot decode {"data":{"a":"aHVudGVyMg==`), "cannot decode ..."},
		{"no permission", status(`secrets "s" is forbidden: User "u" cannot patch`), `secrets "s" is forbidden: User "u" cannot patch`},
		{"not from a server", errors.New("no route\nto host"), "no route to host"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ServerError(c.err)
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if strings.Contains(got, "aHVudGVyMg") || strings.Contains(got, "hunter2") {
				t.Errorf("a value in %s", got)
			}
		})
	}
}

func TestServerErrorIsShort(t *testing.T) {
	var many field.ErrorList
	for range 50 {
		many = append(many, field.Required(field.NewPath("spec"), ""))
	}
	got := ServerError(apierrors.NewInvalid(schema.GroupKind{Kind: "X"}, "x", many))
	if !strings.HasSuffix(got, "and 45 more") {
		t.Errorf("got %s", got)
	}
	got = ServerError(errors.New(strings.Repeat("x", 5000)))
	if len(got) > maxText+len(" ...") {
		t.Errorf("%d characters", len(got))
	}
}

// What is left of a value that was cut is left out with it.
func TestServerErrorCutsValues(t *testing.T) {
	cut := &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
		{Field: "spec", Message: `Invalid value: "{\"a\": \"hunter2 and ` + engine.Cut},
	}}}}
	if got := ServerError(cut); got != "spec: Invalid value" {
		t.Errorf("got %s", got)
	}
}
