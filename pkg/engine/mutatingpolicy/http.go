package mutatingpolicy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"google.golang.org/protobuf/types/known/structpb"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

//nolint:gochecknoglobals // an immutable value
var httpType = cel.OpaqueType("http.Context")

type httpClient struct {
	session  *Session
	caBundle string
}

// httpOptions declare http.Get(), Post() and Client(), also with lower-case first letters, like Kyverno.
func httpOptions() []cel.EnvOption {
	text, headers := cel.StringType, cel.MapType(cel.StringType, cel.StringType)
	options := []cel.EnvOption{cel.Variable(httpName, httpType)}
	for _, names := range [][3]string{{"Get", "Post", "Client"}, {"get", "post", "client"}} {
		id := func(overload string) string { return "http_" + names[0] + "_" + overload }
		options = append(options,
			cel.Function(names[0],
				cel.MemberOverload(id("get"), []*cel.Type{httpType, text}, cel.DynType, cel.FunctionBinding(httpGet)),
				cel.MemberOverload(id("get_headers"), []*cel.Type{httpType, text, headers}, cel.DynType,
					cel.FunctionBinding(httpGet))),
			cel.Function(names[1],
				cel.MemberOverload(id("post"), []*cel.Type{httpType, text, cel.DynType}, cel.DynType,
					cel.FunctionBinding(httpPost)),
				cel.MemberOverload(id("post_headers"), []*cel.Type{httpType, text, cel.DynType, headers}, cel.DynType,
					cel.FunctionBinding(httpPost))),
			cel.Function(names[2],
				cel.MemberOverload(id("client"), []*cel.Type{httpType, text}, httpType,
					cel.BinaryBinding(withCertificates))))
	}
	return options
}

// httpGet takes the client, a URL and optional headers.
func httpGet(args ...ref.Val) ref.Val {
	return httpCall(engine.RemoteRequest{Method: "GET"}, args[0], args[1], args[2:])
}

// httpPost takes the client, a URL, a body and optional headers.
func httpPost(args ...ref.Val) ref.Val {
	data, err := args[2].ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return failed("http", err)
	}
	body, err := json.Marshal(data)
	if err != nil {
		return failed("http", err)
	}
	return httpCall(engine.RemoteRequest{Method: "POST", Body: body}, args[0], args[1], args[3:])
}

func httpCall(r engine.RemoteRequest, client, target ref.Val, headers []ref.Val) ref.Val {
	c := client.Value().(httpClient)
	r.URL, r.CABundle = target.Value().(string), []byte(c.caBundle)
	for _, h := range headers {
		pairs, err := h.ConvertToNative(reflect.TypeFor[map[string]string]())
		if err != nil {
			return failed("http", err)
		}
		r.Header = map[string][]string{}
		for name, value := range pairs.(map[string]string) { // it was converted to this type
			r.Header[name] = []string{value}
		}
	}
	answer, err := c.session.fetch(r)
	if err != nil {
		return failed("http", err)
	}
	return answerOf(answer)
}

// answerOf returns Kyverno's form of an answer: the status next to the fields of an object, or next to
// another body. The status of an answer is 200: other calls fail.
func answerOf(content []byte) ref.Val {
	var body any
	_ = json.Unmarshal(content, &body) // null if it is not JSON
	fields, ok := body.(map[string]any)
	if !ok {
		fields = map[string]any{"body": body}
	}
	fields["statusCode"] = int64(200)
	return types.DefaultTypeAdapter.NativeToValue(fields)
}

func withCertificates(client, bundle ref.Val) ref.Val {
	c := client.Value().(httpClient)
	c.caBundle = bundle.Value().(string)
	return newOpaque(httpType, c)
}

func failed(function string, err error) ref.Val {
	return types.WrapErr(fmt.Errorf("%s: %w", function, err))
}

// raw makes a request to the API server, once per run, and decodes the answer.
func (s *Session) raw(ctx context.Context, method, path string, body []byte) (any, error) {
	if s.world.Raw == nil {
		return nil, s.lacks("%s %s: there is no API server to ask", method, path)
	}
	type key struct{ method, path, body string }
	asked := key{method, path, string(body)}
	answer, err := engine.Once(ctx, s.world, asked, func(w *engine.World) (any, error) {
		content, err := w.Raw.Raw(ctx, method, path, body)
		if err != nil {
			return nil, err
		}
		if len(content) > limit.ContextSize {
			return nil, &limit.Error{What: "bytes in one answer", Max: limit.ContextSize}
		}
		var out any
		if err := utiljson.Unmarshal(content, &out); err != nil {
			return nil, fmt.Errorf("the answer is not JSON: %w", err)
		}
		return out, nil
	})
	var unanswered *engine.UnansweredError
	if errors.As(err, &unanswered) {
		return nil, s.lacks("%v", err)
	}
	return answer, err
}

func (s *Session) fetch(r engine.RemoteRequest) ([]byte, error) {
	if s.world.Remote == nil {
		return nil, s.lacks("http: calls to web services are made only with --allow-http")
	}
	var content []byte
	var err error
	limit.Wait(s.context, func() { content, err = s.world.Remote.Fetch(s.context, r) })
	return content, err
}
