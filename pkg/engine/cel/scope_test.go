package cel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// builtin knows the kinds of Kubernetes itself.
var builtin = &engine.World{Reader: schemas{types: applyconfigurations.NewTypeConverter(scheme.Scheme)}}

type schemas struct {
	engine.Reader
	types managedfields.TypeConverter
}

func (s schemas) Schema(context.Context, schema.GroupVersionKind) (engine.Schema, error) {
	return engine.Schema{Types: s.types}, nil
}

func newScope(t testing.TB, o cel.Options) *cel.Scope {
	t.Helper()
	e, err := cel.NewEnvironment(o)
	if err != nil {
		t.Fatal(err)
	}
	return e.NewScope(func(_ policydecode.Node, err error) { t.Error(err) })
}

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  containers:
  - {name: app, image: "app:1", env: [{name: A, value: a}]}
`

// input is what a Pod's update gives to expressions.
func input(t testing.TB) cel.Input {
	t.Helper()
	object := parse(t, pod)
	u := &unstructured.Unstructured{Object: object}
	request := cel.CandidateOf(t.Context(), &engine.Target{Key: engine.KeyOf(u), Object: u}, &engine.World{}, engine.OperationUpdate)
	return cel.Input{
		Object: object, OldObject: object, Request: request, RequestMap: request.Request(false),
		Namespace: parse(t, "{metadata: {name: shop, labels: {tier: front}, managedFields: []}}"),
		Params:    parse(t, "{data: {team: blue}}"),
	}
}

func TestExpressions(t *testing.T) {
	for name, c := range map[string]struct {
		expression string
		want       bool
	}{
		"request has the server's type":    {"request.operation == 'UPDATE' && request.resource.resource == 'pods'", true},
		"what a request leaves out":        {"!has(request.subResource) && !has(request.userInfo.username)", true},
		"namespaceObject":                  {"namespaceObject.metadata.labels.tier == 'front'", true},
		"params":                           {"params.data.team == 'blue'", true},
		"optional fields":                  {"object.?spec.?nodeName.orValue('none') == 'none'", true},
		"two-variable comprehensions":      {"object.metadata.labels.all(k, v, k == 'app' && v == 'web')", true},
		"a typed variable in a literal":    {"{'a': 'x', 'b': variables.team} == {'a': 'x', 'b': 'blue'}", true},
		"a variable that uses another one": {"variables.teams == ['blue', 'blue']", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(t, cel.Options{Params: true})
			for _, v := range [][2]string{{"team", "string(params.data.team)"}, {"teams", "[variables.team, variables.team]"}} {
				if err := s.Variable(v[0], v[1]); err != nil {
					t.Fatal(err)
				}
			}
			x, err := s.Condition(c.expression)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Evaluate(t.Context(), input(t), cel.MatchBudget).Condition(x)
			if err != nil || got != c.want {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
}

func TestCompileError(t *testing.T) {
	long := strings.Repeat("true && ", 40) + "nothing"
	for name, c := range map[string]struct{ expression, want string }{
		"an unknown name": {"object.a == objekt.b", `
expression, line 1, column 13: undeclared reference to 'objekt' (in container '')
  | object.a == objekt.b
  |             ^`},
		"the second line": {"object.a ==\n\tx1", `
expression, line 2, column 2: undeclared reference to 'x1' (in container '')
  |  x1
  |  ^`},
		"a wrong result": {"'text'", `
expression must evaluate to bool, not string
  | 'text'`},
		"a field that a type does not have": {"request.uid == ''", `
expression, line 1, column 8: undefined field 'uid'
  | request.uid == ''
  |        ^`},
		"a line too long to be shown": {long, `
expression, line 1, column 321: undeclared reference to 'nothing' (in container '')
  | …& true && true && true && true && true && true && nothing
  |                                                    ^`},
		"mixed types in a literal": {"{'a': 'x', 'b': 1} == object.data", `
expression, line 1, column 17: expected type 'string' but found 'int'
  | {'a': 'x', 'b': 1} == object.data
  |                 ^`},
		"a variable that does not compile is reported once": {"variables.broken == 1", ""},
		"no params without a kind of parameters": {"params.a == 1", `
expression, line 1, column 1: undeclared reference to 'params' (in container '')
  | params.a == 1
  | ^`},
		"what makes the library panic": {"{?'a': object.data[?'a']} == object.data", `
expression makes the CEL library panic, which API servers use as well: runtime error: index out of range [0] with length 0
  | {?'a': object.data[?'a']} == object.data`},
		"types of patches are for mutations": {"Object{a: 1} == Object{a: 1}", `
expression, line 1, column 7: undeclared reference to 'Object' (in container '')
  | Object{a: 1} == Object{a: 1}
  |       ^
expression, line 1, column 23: undeclared reference to 'Object' (in container '')
  | Object{a: 1} == Object{a: 1}
  |                       ^`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(t, cel.Options{})
			if err := s.Variable("broken", "1 +"); err == nil {
				t.Fatal("a broken variable compiles")
			}
			_, err := s.Condition(c.expression)
			got := ""
			if err != nil {
				got = "\n" + err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error("(-want +got):\n" + diff)
			}
		})
	}
}

// answers is an Authorizer that says yes to one verb, or nothing.
type answers struct {
	verb  string
	asked *[]engine.AccessRequest
	err   error
}

func (a answers) Authorize(_ context.Context, r engine.AccessRequest) (engine.AccessDecision, error) {
	*a.asked = append(*a.asked, r)
	return engine.AccessDecision{Allowed: r.Verb == a.verb, Reason: "because"}, a.err
}

// asking is the request of a user in a world that answers what users may do.
func asking(t *testing.T, in cel.Input, a engine.Authorizer, user engine.UserInfo) *cel.Candidate {
	target := *in.Request.Target
	target.Request.User = user
	return cel.CandidateOf(t.Context(), &target, &engine.World{Access: a}, engine.OperationUpdate)
}

func TestAuthorizerAsks(t *testing.T) {
	alice := engine.UserInfo{Username: "alice", Groups: []string{"dev"}}
	robot := engine.UserInfo{
		Username: "system:serviceaccount:shop:robot",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:shop"},
	}
	for expression, want := range map[string]engine.AccessRequest{
		"authorizer.path('/healthz').check('get').allowed()": {User: alice, Verb: "get", Path: "/healthz"},
		"authorizer.group('apps').resource('deployments').subresource('scale').namespace('shop').name('web').check('get').allowed()": {
			User: alice, Verb: "get", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "shop", Name: "web",
		},
		"authorizer.requestResource.check('get').allowed()": {User: alice, Verb: "get", Resource: "pods", Namespace: "shop", Name: "web"},
		"authorizer.serviceAccount('shop', 'robot').group('').resource('secrets').check('get').allowed()": {
			User: robot, Verb: "get", Resource: "secrets",
		},
		"authorizer.group('').resource('pods').fieldSelector('spec.nodeName=a,status.phase!=Failed').labelSelector('app=web').check('get').allowed()": {
			User: alice, Verb: "get", Resource: "pods", FieldSelector: "spec.nodeName=a,status.phase!=Failed", LabelSelector: "app=web",
		},
	} {
		s := newScope(t, cel.Options{Authorizer: true})
		x, err := s.Condition(expression)
		if err != nil {
			t.Fatal(err)
		}
		var asked []engine.AccessRequest
		in := input(t)
		in.Request = asking(t, in, answers{"get", &asked, nil}, alice)
		allowed, err := s.Evaluate(t.Context(), in, cel.MatchBudget).Condition(x)
		if err != nil || !allowed {
			t.Errorf("%s: %t, %v", expression, allowed, err)
		}
		if diff := cmp.Diff([]engine.AccessRequest{want}, asked); diff != "" {
			t.Errorf("%s (-want +got):\n%s", expression, diff)
		}
	}
}

func TestAuthorizerUnanswered(t *testing.T) {
	s := newScope(t, cel.Options{Authorizer: true})
	x, err := s.Condition("!authorizer.path('/').check('get').allowed()")
	if err != nil {
		t.Fatal(err)
	}
	in := input(t)
	in.Request = asking(t, in, answers{asked: new([]engine.AccessRequest), err: errors.New("you may not ask")}, engine.UserInfo{})
	_, err = s.Evaluate(t.Context(), in, cel.MatchBudget).Condition(x)
	var unsupported *engine.UnsupportedError
	if !errors.As(err, &unsupported) || unsupported.Error() != "you may not ask" {
		t.Errorf("got %v", err)
	}
}
