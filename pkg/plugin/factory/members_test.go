package factory_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
)

func kubeconfig() *clientcmdapi.Config {
	c := clientcmdapi.NewConfig()
	for _, name := range []string{"prod-eu", "prod-us", "staging"} {
		c.Contexts[name] = &clientcmdapi.Context{Cluster: name, Namespace: "shop"}
		c.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + name}
	}
	c.Contexts["arn:aws:eks:eu:1:cluster/x"] = &clientcmdapi.Context{Cluster: "prod-eu", Namespace: "shop"}
	c.Contexts["eu-default"] = &clientcmdapi.Context{Cluster: "prod-eu"}
	c.Contexts["broken"] = &clientcmdapi.Context{Cluster: "gone"}
	c.Contexts[""] = &clientcmdapi.Context{Cluster: "staging"}
	return c
}

func TestContexts(t *testing.T) {
	for _, c := range []struct{ typed, want string }{
		{"staging,prod-eu", "staging prod-eu"},
		{"prod-*", "prod-eu prod-us"},
		{"staging,prod-*,staging", "staging prod-eu prod-us"},
		{"arn:*/x", "arn:aws:eks:eu:1:cluster/x"},
		{"all", "arn:aws:eks:eu:1:cluster/x broken eu-default prod-eu prod-us staging"},
		{"staging,all", "staging arn:aws:eks:eu:1:cluster/x broken eu-default prod-eu prod-us"},
		{"stagin", `--contexts: there is no context "stagin"; did you mean "staging"?`},
		{"something", `--contexts: there is no context "something"; kubectl config get-contexts lists them`},
		{"test-*", `--contexts: no context matches "test-*"; kubectl config get-contexts lists them`},
		{"prod-eu,*", "prod-eu arn:aws:eks:eu:1:cluster/x broken eu-default prod-us staging"},
		{"staging,", `--contexts: there is no context ""; kubectl config get-contexts lists them`},
	} {
		got, err := factory.ContextsNamed(kubeconfig(), strings.Split(c.typed, ","))
		if err != nil {
			got = []string{err.Error()}
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", c.typed, diff)
		}
	}
	if _, err := factory.ContextsNamed(clientcmdapi.NewConfig(), []string{"all"}); err == nil || !strings.Contains(err.Error(), "has no contexts") {
		t.Errorf("without contexts: %v", err)
	}
}

func TestDistinct(t *testing.T) {
	all, err := factory.ContextsNamed(kubeconfig(), []string{"prod-eu", "all"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		anyNamespace bool
		want         string
	}{
		{false, "prod-eu broken eu-default prod-us staging\n" +
			"context arn:aws:eks:eu:1:cluster/x is left out: it has the same server, user and namespace as prod-eu\n" +
			"contexts prod-eu and eu-default have the same server: objects without a namespace come twice, unless -n or -A is given"},
		{true, "prod-eu broken prod-us staging\n" +
			"context arn:aws:eks:eu:1:cluster/x is left out: it has the same server and user as prod-eu\n" +
			"context eu-default is left out: it has the same server and user as prod-eu"},
	} {
		distinct, notes := factory.DistinctContexts(kubeconfig(), all, c.anyNamespace)
		if diff := cmp.Diff(c.want, strings.Join(distinct, " ")+"\n"+strings.Join(notes, "\n")); diff != "" {
			t.Errorf("any namespace %v: %s", c.anyNamespace, diff)
		}
	}
	for _, anyNamespace := range []bool{false, true} {
		// Teleport's proxy tells clusters apart by the user; others do by the name in the TLS handshake, or
		// by how they are reached.
		proxied := clientcmdapi.NewConfig()
		proxied.Clusters["teleport"] = &clientcmdapi.Cluster{Server: "https://proxy"}
		proxied.Clusters["name"] = &clientcmdapi.Cluster{Server: "https://proxy", TLSServerName: "other"}
		proxied.Clusters["way"] = &clientcmdapi.Cluster{Server: "https://proxy", ProxyURL: "socks5://bastion"}
		for name, cluster := range map[string]string{"a": "teleport", "b": "teleport", "c": "teleport", "d": "name", "e": "way"} {
			proxied.Contexts[name] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: name}
		}
		proxied.Contexts["b2"] = &clientcmdapi.Context{Cluster: "teleport", AuthInfo: "b"}
		distinct, notes := factory.DistinctContexts(proxied, []string{"a", "b", "b2", "c", "d", "e"}, anyNamespace)
		sameness := map[bool]string{false: "server, user and namespace", true: "server and user"}[anyNamespace]
		want := "a b c d e\n" +
			"contexts a and b have the same server and different users: if they are one cluster, its objects come twice\n" +
			"context b2 is left out: it has the same " + sameness + " as b"
		if diff := cmp.Diff(want, strings.Join(distinct, " ")+"\n"+strings.Join(notes, "\n")); diff != "" {
			t.Errorf("any namespace %v: %s", anyNamespace, diff)
		}
	}
	if got := fmt.Sprint(factory.RepeatedContexts([]string{"a", "b*", "a", "c", "a", "b*"})); got != "[a b*]" {
		t.Errorf("named twice: %s", got)
	}
}

// brief is an error that several objects share.
type brief struct{}

func (brief) Error() string { return "no value for shop/one" }
func (brief) Brief() string { return "no value" }

// found are events with all that a change can have.
func found() []output.Event {
	object := func(kind, name string, content map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop", "uid": "u-" + name},
		}}
		for k, v := range content {
			u.Object[k] = v
		}
		return u
	}
	rule := engine.RuleRef{Dialect: "kyverno", Policy: "p", Rule: "r", Origin: "p.yaml:3"}
	between := func(before, after *unstructured.Unstructured) engine.Change {
		c := engine.Change{Before: before, After: after, Scoped: true}
		if c.Subject = engine.KeyOf(after); before != nil {
			c.Fields = diff.Compare(before.Object, after.Object, diff.Type{})
		} else {
			c.Fields = []engine.FieldChange{{Kind: engine.Added, To: after.Object}}
		}
		for i := range c.Fields {
			c.Fields[i].Writer = &rule
		}
		c.Steps = []engine.Step{{Rule: rule, Outcome: engine.Changed, Fields: c.Fields, Warnings: []engine.Warning{"careful"}, AsCreated: true}}
		return c
	}
	changed := between(
		object("ConfigMap", "one", map[string]any{"n": int64(1), "f": 1.5, "null": nil, "list": []any{"a", int64(2), map[string]any{"name": "x", "v": true}}}),
		object("ConfigMap", "one", map[string]any{"n": int64(20000000000000000), "f": "1.5", "list": []any{"a", int64(3), map[string]any{"name": "x", "v": false}, "\x1b[2J\n::error::"}}),
	)
	changed.Impacts = []engine.Impact{{Code: engine.ImpactRollout, Text: "shop/one restarts", Brief: "restarts", Advice: "wait", Fields: []fieldpath.Path{fieldpath.MakePathOrDie("list", 0), {}}, Pods: 3}}
	failed := engine.Change{Subject: engine.KeyOf(object("ConfigMap", "two", nil)), Before: object("ConfigMap", "two", nil), After: object("ConfigMap", "two", nil)}
	failed.Target.Origin = "file.yaml:7"
	failed.Steps = []engine.Step{{Rule: rule, Outcome: engine.Failed, Err: brief{}, TriggeredBy: &changed.Subject}}
	failed.Asked = []engine.RuleRef{{Policy: "other", Rule: "x"}}
	secret := between(
		object("Secret", "three", map[string]any{"data": map[string]any{"k": "aHVudGVyMi1odW50ZXIy"}}),
		object("Secret", "three", map[string]any{"data": map[string]any{"k": "aHVudGVyMi1odW50ZXIz"}}),
	)
	same := engine.Change{Subject: failed.Subject, Before: failed.Before, After: failed.Before, Steps: []engine.Step{{Rule: rule, Outcome: engine.Skipped, Err: brief{}}}}
	made := between(nil, object("ConfigMap", "four", map[string]any{"data": map[string]any{"k": "v"}}))
	var out []output.Event
	for _, c := range []engine.Change{changed, failed, secret, same, made} {
		out = append(out, output.Evaluated{Change: &c})
	}
	return out
}

func finding(*factory.Member) error { return nil }

// gathered is a fleet in which each member finds the same.
func gathered(t *testing.T, run func(*factory.Member) error) *factory.FleetRun {
	t.Helper()
	f := &factory.FleetRun{AtOnce: 2}
	for _, name := range []string{"a", "b", "c"} {
		f.Members = append(f.Members, &factory.Member{Name: name, Run: func(_ context.Context, m *factory.Member) (int, error) {
			summary := evaluation.NewSummary(nil)
			for _, e := range found() {
				summary.Add(e.(output.Evaluated).Change)
				if err := m.Print(e); err != nil {
					return 3, err
				}
			}
			return 1, errors.Join(m.Print(output.Summary{Summary: *summary}), run(m))
		}})
	}
	f.Gather(t.Context())
	return f
}

// What was kept is shown as what is shown at once, in every format.
func TestReplayShowsTheSame(t *testing.T) {
	for _, format := range []string{
		formats.Diff, formats.Summary, formats.Table, formats.Wide, formats.Markdown, formats.Name, formats.JSON, formats.YAML, formats.Manifests, formats.JSONPatch,
		formats.JSONPath + "={.changes[*].object.cluster}", formats.CustomColumns + "=C:.object.cluster,N:.object.name",
	} {
		for _, by := range []output.GroupBy{output.ByPatch, output.ByObject, output.ByCluster} {
			show := func(print func(output.Printer) error) string {
				var out bytes.Buffer
				p, err := formats.New(format, output.Options{Out: &out, GroupBy: by, ContextLines: 3})
				if err == nil {
					err = print(p)
				}
				if err == nil {
					err = errors.Join(p.Print(output.Summary{}), p.Close())
				}
				if err != nil {
					t.Fatalf("%s: %v", format, err)
				}
				return out.String()
			}
			f := gathered(t, finding)
			var all output.Event
			got := show(func(p output.Printer) error {
				return f.Replay(t.Context(), func(e output.Event) error {
					if _, is := e.(output.Fleet); is {
						all = e
					}
					return p.Print(e)
				})
			})
			want := show(func(p output.Printer) error {
				err := p.Print(all)
				for _, m := range f.Members {
					for _, e := range found() {
						c := e.(output.Evaluated).Change
						c.Subject.Cluster = m.Name
						err = errors.Join(err, p.Print(e))
					}
				}
				return err
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s by %s: -at once +kept:\n%s", format, by, diff)
			}
			if strings.Contains(got, "aHVudGVyMi1odW50ZXI") {
				t.Errorf("%s by %s: a value of a Secret is shown:\n%s", format, by, got)
			}
			if !regexp.MustCompile(`(on|cluster:) "?b\b|"cluster": ?"b"|--context=b|(?m)^b |a b b b b`).MatchString(got) {
				t.Errorf("%s by %s: cluster b is not named:\n%s", format, by, got)
			}
		}
	}
}

// The run on one cluster ends as it ends, whatever becomes of the others; problems that they share are one.
func TestGatherKeepsClustersApart(t *testing.T) {
	shared, own := errors.New("no such file"), errors.New("connection lost")
	var running, most atomic.Int32
	f := gathered(t, func(m *factory.Member) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		if err := m.Print(output.Problem{Err: shared}); err != nil || m.Name == "c" {
			return err
		}
		if m.Name == "b" {
			m.End = nil
			return own
		}
		return m.Print(output.Problem{Err: own})
	})
	var got []string
	err := f.Replay(t.Context(), func(e output.Event) error {
		switch e := e.(type) {
		case output.Fleet:
			for _, c := range e.Clusters {
				got = append(got, fmt.Sprint(c))
			}
		case output.Problem:
			got = append(got, e.Err.Error())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"{a  4 3 1 3 2 no such file}", "{b  5 0 0 0 2 no such file}", "{c  4 3 1 3 1 no such file}",
		"a, b, c: no such file", "a, b: connection lost",
	}
	// The object that is made is evaluated, too.
	for i := range want[:3] {
		want[i] = strings.Replace(want[i], "  4 ", "  5 ", 1)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if most.Load() > 2 {
		t.Errorf("%d clusters were read at once", most.Load())
	}
	if s := f.Summary(); s.Objects != 10 || s.Changed != 6 || s.Restarts.Pods != 6 {
		t.Errorf("summary %+v", s)
	}
}

func TestNotices(t *testing.T) {
	var n factory.Notices
	for _, name := range []string{"b", "a"} {
		w := n.Of(name)
		for _, text := range []string{"warning: p.yaml:3: odd\n", "error: only " + name + "\n", "warning: p.yaml:3: odd\n"} {
			if _, err := fmt.Fprint(w, text); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out strings.Builder
	if err := n.Flush(&out, []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a, b: warning: p.yaml:3: odd\na: error: only a\nb: error: only b\n", out.String()); diff != "" {
		t.Error(diff)
	}
}
