package translate_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	celgo "github.com/google/cel-go/cel"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// both evaluates what Kyverno's rules say and its translation on the same objects.
type both struct {
	scopes   map[translate.Language]*cel.Scope
	pod      diff.Type
	objects  []map[string]any
	compiled map[string]*cel.Expression
	err      error // of an expression that does not compile
}

func newBoth(t testing.TB, objects []map[string]any) *both {
	t.Helper()
	admission, err := cel.NewEnvironment(cel.Options{Authorizer: true})
	if err != nil {
		t.Fatal(err)
	}
	kyverno, err := cel.NewEnvironment(cel.Options{RequestObjects: true, PatchTypes: true, Extensions: mutatingpolicy.LibraryOptions(false)})
	if err != nil {
		t.Fatal(err)
	}
	b := &both{pod: podType(t), objects: objects, compiled: map[string]*cel.Expression{}}
	failed := func(_ policydecode.Node, err error) { b.err = err }
	b.scopes = map[translate.Language]*cel.Scope{translate.MutatingPolicy: kyverno.NewScope(failed), translate.MutatingAdmissionPolicy: admission.NewScope(failed)}
	return b
}

func podType(t testing.TB) diff.Type {
	t.Helper()
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	document, err := openapi.Builtin(gvk)
	if err != nil {
		t.Fatal(err)
	}
	return diff.NewType(document.Schema(gvk).Types, gvk)
}

// scope is that of a rule that matches Pods, with or without their schema. Element is the first
// container.
func (b *both) scope(l translate.Language, known bool) *translate.Scope {
	o := translate.Options{Language: l, Namespace: expr.Path("request.namespace")}
	if known {
		o.Kinds = []diff.Type{b.pod}
	}
	return translate.NewScope(o)
}

func request(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	return map[string]any{
		"operation": "CREATE", "object": object, "oldObject": nil, "name": metadata["name"], "namespace": "shop",
		"kind":     map[string]any{"group": "", "version": "v1", "kind": "Pod"},
		"resource": map[string]any{"group": "", "version": "v1", "resource": "pods"},
		"userInfo": map[string]any{"username": "system:serviceaccount:shop:builder", "groups": []any{"a", "system:authenticated"}},
	}
}

func kyvernoScope(object map[string]any) *variables.Scope {
	s := variables.NewScope(jmespath.New(time.Unix(0, 0), 1, nil))
	s.Set("request", request(object))
	s.Set("serviceAccountName", "builder")
	s.Set("serviceAccountNamespace", "shop")
	return s
}

// evaluate returns the value of an expression as JSON has it.
func (b *both) evaluate(t testing.TB, l translate.Language, e expr.Expr, object map[string]any) (any, error) {
	t.Helper()
	s := b.scopes[l]
	x := b.compile(t, l, e)
	fields := request(object)
	v, err := s.Evaluate(t.Context(), cel.Input{Object: object, RequestMap: fields}, cel.MutationBudget).Value(x)
	if err != nil {
		return nil, err
	}
	native, err := v.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, err
	}
	return native.(*structpb.Value).AsInterface(), nil
}

func (b *both) compile(t testing.TB, l translate.Language, e expr.Expr, want ...*celgo.Type) *cel.Expression {
	t.Helper()
	text := e.String()
	key := fmt.Sprint(l) + text
	if b.compiled[key] == nil {
		compiled := b.scopes[l].Values([]cel.Source{{Text: text}}, want...)
		if len(compiled) == 0 {
			t.Fatalf("%v\n%s", b.err, text)
		}
		b.compiled[key] = compiled[0]
	}
	return b.compiled[key]
}

// holds evaluates a condition; nil holds.
func (b *both) holds(t testing.TB, l translate.Language, e expr.Expr, object map[string]any) bool {
	t.Helper()
	if e == nil {
		return true
	}
	b.compile(t, l, e, celgo.BoolType)
	v, err := b.evaluate(t, l, e, object)
	if err != nil {
		t.Fatalf("%v\n%s\non %s", err, e.String(), text(object))
	}
	return v == true
}

func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

// plain is a value with all numbers as float64.
func plain(value any) any {
	var out any
	if json.Unmarshal([]byte(text(value)), &out) != nil {
		return value
	}
	return out
}

// query compares a query, or another string with variables; it returns why it is not translated.
func (b *both) query(t testing.TB, l translate.Language, known bool, doc any) error {
	t.Helper()
	template, err := variables.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	var v translate.Value
	if err := translate.Try(func() { v = b.scope(l, known).Value(doc) }); err != nil {
		return err
	}
	for _, object := range b.objects {
		want, failed := template.Render(kyvernoScope(object))
		guard := b.holds(t, l, v.Guard(), object)
		where := func() string {
			return fmt.Sprintf("%s\nis %s\nhas %s\nguard %s\non %s", text(doc), v.Plain().String(), v.Has().String(), v.Guard().String(), text(object))
		}
		if guard != (failed == nil) {
			t.Fatalf("guarded: %t, but fails with: %v\n%s", guard, failed, where())
		}
		has := b.holds(t, l, v.Has(), object)
		if has != (failed == nil && want != nil) {
			t.Fatalf("has a value: %t, but is %s, and fails with: %v\n%s", has, text(want), failed, where())
		}
		const def = "a default"
		if !has {
			want = def
		} else if got, err := b.evaluate(t, l, v.Plain(), object); err != nil || !reflect.DeepEqual(got, plain(want)) {
			t.Fatalf("got %s, want %s: %v\n%s", text(got), text(want), err, where())
		}
		or := v.Or(expr.Call("dyn", expr.String(def)))
		if got, err := b.evaluate(t, l, or, object); err != nil || !reflect.DeepEqual(got, plain(want)) {
			t.Fatalf("with a default: got %s, want %s: %v\n%s\n%s", text(got), text(want), err, or.String(), where())
		}
	}
	return nil
}

// conditions compares preconditions.
func (b *both) conditions(t testing.TB, l translate.Language, known bool, raw any) error {
	t.Helper()
	compiled, err := match.ParseConditions(raw)
	if err != nil {
		t.Fatal(err)
	}
	var translated []translate.Condition
	if err := translate.Try(func() { translated = b.scope(l, known).Conditions(raw) }); err != nil {
		return err
	}
	for _, object := range b.objects {
		err := compiled.Check(kyvernoScope(object))
		want := err == nil
		got := true
		for _, c := range translated {
			got = b.holds(t, l, c.Expr, object) && got
		}
		if got != want {
			lines := ""
			for _, c := range translated {
				lines += c.Expr.String() + "\n"
			}
			t.Fatalf("got %t, want %t (%v)\n%s\n%son %s", got, want, err, text(raw), lines, text(object))
		}
	}
	return nil
}

// matches compares the pattern of an anchor on a field.
func (b *both) matches(t testing.TB, l translate.Language, known bool, query, want string) error {
	t.Helper()
	compiled := jmespathOf(t, query)
	s := b.scope(l, known)
	var e expr.Expr
	if err := translate.Try(func() { e = s.Pattern(s.Query(query), want) }); err != nil {
		return err
	}
	for _, object := range b.objects {
		got := b.holds(t, l, e, object)
		value, err := kyvernoScope(object).Query(compiled)
		holds := false
		if err == nil && value != nil {
			if scalar, ok := pattern.Text(value); ok {
				value = scalar
			}
			holds = pattern.Match(nil, want, value, nil)
		}
		if got != holds {
			t.Fatalf("got %t, want %t\n%s matches %q: %s\nvalue %s", got, holds, query, want, e.String(), text(value))
		}
	}
	return nil
}

func jmespathOf(t testing.TB, query string) *jmespath.Expression {
	t.Helper()
	compiled, err := jmespath.Compile(query)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}
