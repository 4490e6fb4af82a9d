// Command kyverno evaluates policies with the code of Kyverno's CLI and engines. It is built inside of Kyverno's own
// module, as a command beside its CLI, so with the versions that Kyverno is released with.
//
// It differs from "kyverno apply" in what it prints, one line of JSON for each object, and in that it compiles a
// MutatingPolicy once: the CLI compiles it again for each object, some 60 ms.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kyverno/kyverno/cmd/cli/kubectl-kyverno/data"
	"github.com/kyverno/kyverno/cmd/cli/kubectl-kyverno/log"
	"github.com/kyverno/kyverno/cmd/cli/kubectl-kyverno/policy"
	"github.com/kyverno/kyverno/cmd/cli/kubectl-kyverno/processor"
	"github.com/kyverno/kyverno/cmd/cli/kubectl-kyverno/resource"
	"github.com/kyverno/kyverno/cmd/cli/kubectl-kyverno/store"
	"github.com/kyverno/kyverno/cmd/cli/kubectl-kyverno/utils/common"
	celengine "github.com/kyverno/kyverno/pkg/cel/engine"
	"github.com/kyverno/kyverno/pkg/cel/libs"
	"github.com/kyverno/kyverno/pkg/cel/matching"
	"github.com/kyverno/kyverno/pkg/cel/policies/mpol/compiler"
	mpolengine "github.com/kyverno/kyverno/pkg/cel/policies/mpol/engine"
	"github.com/kyverno/kyverno/pkg/clients/dclient"
	"github.com/kyverno/kyverno/pkg/config"
	engineapi "github.com/kyverno/kyverno/pkg/engine/api"
	utils "github.com/kyverno/kyverno/pkg/utils/restmapper"
	policyvalidation "github.com/kyverno/kyverno/pkg/validation/policy"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
	"sigs.k8s.io/kubectl-validate/pkg/openapiclient"
)

// request is an object, and the file of the policy that is evaluated on it.
type request struct {
	Policy, Operation string
	Object            json.RawMessage
}

// result is what came of one object.
type result struct {
	Object map[string]any `json:"object"`           // as it is afterwards
	Errors []string       `json:"errors,omitempty"` // of rules
}

// world has what the evaluations of all objects share.
type world struct {
	mapper     meta.RESTMapper
	client     dclient.Interface
	store      store.Store
	labels     map[string]map[string]string // of namespaces
	context    libs.Context
	types      compiler.TypeConverterManager
	namespaces map[string]*corev1.Namespace
}

// judge has the policies of a file.
type judge struct {
	*world
	policies *policy.LoaderResults
	engine   mpolengine.Engine
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	objects := flag.String("world", "", "file of what policies can read")
	crds := flag.String("crds", "", "file of CustomResourceDefinitions, alone in its directory")
	flag.Parse()
	if err := log.Configure(); err != nil {
		return err
	}
	w, err := newWorld(*objects, *crds)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	judges := map[string]*judge{}
	for in := json.NewDecoder(bufio.NewReader(os.Stdin)); in.More(); {
		var r request
		if err := in.Decode(&r); err != nil {
			return err
		}
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(r.Object); err != nil {
			return err
		}
		if judges[r.Policy] == nil {
			if judges[r.Policy], err = w.judge(r.Policy); err != nil {
				return err
			}
		}
		if err := json.NewEncoder(out).Encode(judges[r.Policy].evaluate(r.Operation, object)); err != nil {
			return err
		}
	}
	return nil
}

func newWorld(objects, crds string) (*world, error) {
	data.InjectProcessor(data.NewCRDProcessor(nil))
	schemas := []openapi.Client{openapiclient.NewHardcodedBuiltins("1.32")}
	if crds != "" {
		if err := common.LoadCrdsFromPath(crds); err != nil {
			return nil, err
		}
		schemas = append([]openapi.Client{openapiclient.NewLocalCRDFiles(os.DirFS(filepath.Dir(crds)))}, schemas...)
	}
	w := &world{
		labels: map[string]map[string]string{}, namespaces: map[string]*corev1.Namespace{},
		types: compiler.NewStaticTypeConverterManager(openapiclient.NewComposite(schemas...)),
	}
	w.store.SetLocal(true)
	w.store.AllowApiCall(true)
	var err error
	if w.mapper, err = utils.GetRESTMapper(nil); err != nil {
		return nil, err
	}
	return w, w.read(objects)
}

func (w *world) judge(file string) (*judge, error) {
	policies, err := policy.Load(nil, "", file)
	if err != nil {
		return nil, err
	}
	if len(policies.Policies)+len(policies.MutatingPolicies) == 0 {
		return nil, fmt.Errorf("%s has no policy", file)
	}
	for _, p := range policies.Policies {
		account := config.KyvernoUserName(config.KyvernoServiceAccountName())
		if _, err := policyvalidation.Validate(p, nil, nil, true, account, account); err != nil {
			return nil, fmt.Errorf("policy is not valid: %w", err)
		}
	}
	provider, err := mpolengine.NewProvider(compiler.NewCompiler(), policies.MutatingPolicies, nil, w.context)
	if err != nil {
		return nil, err
	}
	namespace := func(name string) *corev1.Namespace { return w.namespaces[name] }
	return &judge{w, policies, mpolengine.NewEngine(provider, namespace, matching.NewMatcher(), w.types, w.context)}, nil
}

// read makes the objects that policies can read.
func (w *world) read(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	objects, err := resource.GetUnstructuredResources(content)
	if err != nil {
		return err
	}
	fake := libs.NewFakeContextProvider()
	lists, kinds, typed := map[schema.GroupVersionResource]string{}, map[schema.GroupVersionResource]schema.GroupVersionKind{}, []runtime.Object{}
	for _, o := range objects {
		gvr, err := w.resource(o.GroupVersionKind())
		if err != nil {
			return err
		}
		if err := fake.AddResource(gvr, o); err != nil {
			return err
		}
		lists[gvr], kinds[gvr] = o.GetKind()+"List", o.GroupVersionKind()
		typed = append(typed, o.DeepCopy())
		if o.GetKind() == "Namespace" {
			w.labels[o.GetName()] = o.GetLabels()
			w.namespaces[o.GetName()] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.GetName(), Labels: o.GetLabels(), Annotations: o.GetAnnotations()}}
		}
	}
	w.context = fake
	if w.client, err = dclient.NewFakeClient(runtime.NewScheme(), lists, typed...); err != nil {
		return err
	}
	discovery := dclient.NewFakeDiscoveryClient(nil)
	for gvr, gvk := range kinds {
		discovery.AddGVRToGVKMapping(gvr, gvk)
	}
	w.client.SetDiscovery(discovery)
	return nil
}

func (w *world) resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	mapping, err := w.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		guess, _ := meta.UnsafeGuessKindToResource(gvk)
		return guess, nil
	}
	return mapping.Resource, nil
}

func (j *judge) evaluate(operation string, object unstructured.Unstructured) (out result) {
	defer func() {
		if p := recover(); p != nil {
			out.Errors = append(out.Errors, fmt.Sprint("panic: ", p))
		}
	}()
	out.Object = object.DeepCopy().Object
	if len(j.policies.Policies) > 0 {
		// Unlike the CLI's, an admission request has all numbers as double: add(request.object.spec.count, `1`) works there.
		content, err := object.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(content, &object.Object)
		}
		if err != nil {
			out.Errors = append(out.Errors, err.Error())
			return out
		}
		p := processor.PolicyProcessor{
			Store: &j.store, Policies: j.policies.Policies, Resource: object, Operation: operation, NamespaceSelectorMap: j.labels,
			Rc: &processor.ResultCounts{}, Out: io.Discard, Client: j.client, RESTMapper: j.mapper,
		}
		responses, err := p.ApplyPoliciesOnResource()
		if err != nil {
			out.Errors = append(out.Errors, err.Error())
		}
		for _, r := range responses {
			out.add(r.PolicyResponse.Rules)
			if r.PatchedResource.Object != nil {
				out.Object = r.PatchedResource.Object
			}
		}
	}
	if len(j.policies.MutatingPolicies) > 0 {
		j.mutate(operation, object, &out)
	}
	return out
}

func (j *judge) mutate(operation string, object unstructured.Unstructured, out *result) {
	gvk := object.GroupVersionKind()
	gvr, err := j.resource(gvk)
	if err != nil {
		out.Errors = append(out.Errors, err.Error())
		return
	}
	verb, now, old := processor.AdmissionRequestShape(operation, &object)
	request := celengine.Request(j.context, gvk, gvr, "", object.GetName(), object.GetNamespace(), verb,
		authenticationv1.UserInfo{}, now, old, false, nil)
	response, err := j.engine.Handle(context.Background(), request, mpolengine.NoTargetMatchConstraintPolicy()) // as its webhook does
	if err != nil {
		out.Errors = append(out.Errors, err.Error())
		return
	}
	for _, r := range response.Policies {
		out.add(r.Rules)
	}
	if response.PatchedResource != nil {
		out.Object = response.PatchedResource.Object
	}
}

func (r *result) add(rules []engineapi.RuleResponse) {
	for _, rule := range rules {
		if rule.Status() == engineapi.RuleStatusError || rule.Status() == engineapi.RuleStatusFail {
			r.Errors = append(r.Errors, rule.Message())
		}
	}
}
