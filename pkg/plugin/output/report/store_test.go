package report_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
)

// server holds reports.
type server struct {
	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	refuses string // a part of the names of what it does not take
	applied []string
}

func at(u *unstructured.Unstructured) string {
	return strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
}

func (s *server) Apply(_ context.Context, _ engine.ObjectKey, body []byte) error {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &u.Object); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses != "" && strings.Contains(u.GetName(), s.refuses) {
		return errors.New("refused")
	}
	s.objects[at(u)] = u
	s.applied = append(s.applied, at(u))
	return nil
}

func (s *server) Delete(_ context.Context, k engine.ObjectKey, _ types.UID) error {
	delete(s.objects, strings.TrimPrefix(k.Namespace+"/"+k.Name, "/"))
	return nil
}

func (s *server) List(_ context.Context, sel engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for _, name := range s.names() {
			if sel.Matches(s.objects[name]) && !yield(s.objects[name], nil) {
				return
			}
		}
	}
}

func (s *server) names() []string {
	var out []string
	for name := range s.objects {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// report is one as package policyreport writes it.
func writtenReport(namespace, name, result string) string {
	kind, scope := "ClusterPolicyReport", ""
	if namespace != "" {
		kind, scope = "PolicyReport", "\n  namespace: "+namespace
	}
	return fmt.Sprintf("---\napiVersion: wgpolicyk8s.io/v1alpha2\nkind: %s\nmetadata:\n  name: kubectl-mutate-0\n  namespace: %q\nresults:\n- {policy: p, rule: r, result: %s}\nscope:\n  apiVersion: v1\n  kind: ConfigMap\n  name: %s%s\n  uid: u-%s\n", kind, namespace, result, name, scope, name)
}

func options(scope engine.Scope) report.StoreOptions {
	api := report.WGPolicyAPI()
	return report.StoreOptions{Name: "set", Kind: api.Kind(), ClusterKind: api.ClusterKind(), Scope: scope, Workers: 3}
}

// run writes reports.
func (s *server) run(t *testing.T, o report.StoreOptions, complete bool, reports ...string) error {
	t.Helper()
	store := report.NewStore(t.Context(), s, o)
	for _, text := range reports {
		if _, err := store.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	store.Finds(complete)
	return store.Commit()
}

func TestStoreDeletesWhatARunNoLongerFinds(t *testing.T) {
	all := engine.Scope{ClusterScoped: true}
	shop := all
	shop.Namespaces, shop.ClusterScoped = []string{"shop"}, false
	secrets := all
	secrets.Only = []engine.ObjectKey{{GroupKind: schema.GroupKind{Kind: "Secret"}}}
	tenth := all
	tenth.Percent = 10
	var other engine.Scope // the shard of bank alone
	for i := range 7 {
		if shard := (engine.Shard{Index: i, Of: 7}); shard.Has("bank", "") {
			other = engine.Scope{ClusterScoped: true, Shard: shard}
		}
	}
	everything := []string{"bank/set-u-c", "set-u-node", "shop/set-u-a", "shop/set-u-b"}
	for name, c := range map[string]struct {
		scope    engine.Scope
		complete bool
		want     []string
	}{
		"all":                        {all, true, []string{"shop/set-u-a"}},
		"not all was read":           {all, false, everything},
		"a namespace":                {shop, true, []string{"bank/set-u-c", "set-u-node", "shop/set-u-a"}},
		"another kind":               {secrets, true, everything},
		"a percentage":               {tenth, true, everything},
		"a shard without the others": {other, true, []string{"set-u-node", "shop/set-u-a", "shop/set-u-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{objects: map[string]*unstructured.Unstructured{}}
			if err := s.run(t, options(all), true, writtenReport("shop", "a", "fail"), writtenReport("shop", "b", "pass"), writtenReport("bank", "c", "fail"), writtenReport("", "node", "fail")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(everything, s.names()); diff != "" {
				t.Fatal(diff)
			}
			s.objects["shop/foreign"] = &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport", "metadata": map[string]any{
					"name": "foreign", "namespace": "shop", "labels": map[string]any{"app.kubernetes.io/managed-by": "kyverno", "app.kubernetes.io/instance": "set"},
				},
			}}
			if err := s.run(t, options(c.scope), c.complete, writtenReport("shop", "a", "pass")); err != nil {
				t.Fatal(err)
			}
			if _, there := s.objects["shop/foreign"]; !there {
				t.Error("a report of another program was deleted")
			}
			delete(s.objects, "shop/foreign")
			if diff := cmp.Diff(c.want, s.names()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is in the cluster already is not written again, whatever the server and others have added to it.
func TestStoreWritesWhatChanged(t *testing.T) {
	s := &server{objects: map[string]*unstructured.Unstructured{}}
	all := engine.Scope{ClusterScoped: true}
	tenth := all
	tenth.Percent = 10
	reports := []string{writtenReport("shop", "a", "fail"), writtenReport("shop", "b", "pass"), writtenReport("", "node", "fail")}
	labelled := func() {
		u := s.objects["shop/set-u-a"]
		labels := u.GetLabels()
		labels["theirs"] = "1"
		u.SetLabels(labels)
		u.SetResourceVersion("7")
		u.SetAnnotations(map[string]string{"theirs": "1"})
	}
	for _, step := range []struct {
		name    string
		before  func()
		scope   engine.Scope
		reports []string
		want    []string
	}{
		{"the first run", nil, all, reports, []string{"set-u-node", "shop/set-u-a", "shop/set-u-b"}},
		{"the same again", labelled, all, reports, nil},
		{"one that changed", nil, all, []string{reports[0], writtenReport("shop", "b", "fail"), reports[2]}, []string{"shop/set-u-b"}},
		{"one that others changed", func() { s.objects["shop/set-u-a"].Object["results"] = nil }, all, reports, []string{"shop/set-u-a", "shop/set-u-b"}},
		{"one that is no longer of the set", func() { s.objects["set-u-node"].SetLabels(nil) }, all, reports, []string{"set-u-node"}},
		{"one without its owner", func() { s.objects["shop/set-u-b"].SetOwnerReferences(nil) }, all, reports, []string{"shop/set-u-b"}},
		{"a few", nil, tenth, reports[:1], []string{"shop/set-u-a"}},
	} {
		s.applied = nil
		if step.before != nil {
			step.before()
		}
		if err := s.run(t, options(step.scope), true, step.reports...); err != nil {
			t.Fatal(err)
		}
		slices.Sort(s.applied)
		if diff := cmp.Diff(step.want, s.applied); diff != "" {
			t.Errorf("%s: written -want +got:\n%s", step.name, diff)
		}
	}
}

// Sets do not meet, and a report has its object for an owner.
func TestStoreNamesReports(t *testing.T) {
	s := &server{objects: map[string]*unstructured.Unstructured{}}
	all := engine.Scope{ClusterScoped: true}
	second := options(all)
	second.Name = "second"
	err := errors.Join(
		s.run(t, options(all), true, writtenReport("shop", "a", "fail"), writtenReport("shop", "a", "fail"), "# No rule matched an object.\n"),
		s.run(t, second, true, writtenReport("shop", "b", "pass"), "kind: ClusterPolicyReport\napiVersion: wgpolicyk8s.io/v1alpha2\nmetadata: {name: kubectl-mutate-problems}\nresults: [{policy: p, result: error}]\n"),
	)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"second-problems", "shop/second-u-b", "shop/set-u-a", "shop/set-u-a-0"}, s.names()); diff != "" {
		t.Error(diff)
	}
	owner := s.objects["shop/set-u-a"].GetOwnerReferences()
	if len(owner) != 1 || owner[0].UID != "u-a" || owner[0].Name != "a" || owner[0].Kind != "ConfigMap" {
		t.Errorf("owners: %v", owner)
	}
	got, err := report.ReadSummary(t.Context(), s, second)
	want := report.StoreSummary{Objects: 1, Rules: []report.StoreCount{{Policy: "p", Error: 1}, {Policy: "p", Rule: "r", Pass: 1}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// A report that is not written is told, and then nothing is deleted.
func TestStoreTellsWhatItCannotWrite(t *testing.T) {
	s := &server{objects: map[string]*unstructured.Unstructured{}}
	all := options(engine.Scope{ClusterScoped: true})
	if err := s.run(t, all, true, writtenReport("shop", "a", "fail"), writtenReport("shop", "b", "fail")); err != nil {
		t.Fatal(err)
	}
	s.refuses = "u-c"
	err := s.run(t, all, true, writtenReport("shop", "a", "fail"), writtenReport("shop", "c", "fail"))
	if err == nil || !strings.HasPrefix(err.Error(), "1 of 2 reports were not written to the cluster") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"shop/set-u-a", "shop/set-u-b"}, s.names()); diff != "" {
		t.Error(diff)
	}
}
