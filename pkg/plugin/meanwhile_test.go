package plugin_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// meanwhilePolicy reads all that a policy can read: a ConfigMap, a Secret, the labels of a Namespace, and a
// trigger.
const meanwhilePolicy = `{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p", "uid": "u-p", "resourceVersion": "1"}, "spec": {"rules": [
	{"name": "level", "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["a", "b"]}}]},
		"context": [{"name": "conf", "configMap": {"namespace": "shop", "name": "c"}}],
		"mutate": {"patchStrategicMerge": {"data": {"level": "{{ conf.data.level }}"}}}},
	{"name": "copy", "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["a"]}}]},
		"context": [{"name": "s", "apiCall": {"urlPath": "/api/v1/namespaces/shop/secrets/s", "jmesPath": "data.p"}}],
		"mutate": {"patchStrategicMerge": {"data": {"copied": "of {{ s }}"}}}},
	{"name": "gold", "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["a", "b"], "namespaceSelector": {"matchLabels": {"tier": "gold"}}}}]},
		"mutate": {"patchStrategicMerge": {"data": {"tier": "gold"}}}},
	{"name": "append", "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["b"]}}]},
		"mutate": {"patchesJson6902": "[{\"op\": \"add\", \"path\": \"/metadata/finalizers/-\", \"value\": \"example.com/two\"}]"}},
	{"name": "existing", "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["c"]}}]},
		"mutate": {"targets": [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "b"}], "patchStrategicMerge": {"data": {"from": "{{ request.object.data.other }}"}}}}]}}`

// meanwhileServer is a tamperedServer with a policy, a Secret and a Namespace that can change as well. It has
// something happen before the request with a number.
type meanwhileServer struct {
	*tamperedServer
	policy, secret, labels string

	requests []string // that were sent since it was reset
	at       int
	act      func()
	acted    int // how much was written before
}

func (s *meanwhileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if len(s.requests) == s.at && s.act != nil {
		s.acted = len(s.writes)
		s.act()
	}
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	answer := ""
	switch path.Base(r.URL.Path) {
	case "clusterpolicies":
		answer = `{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicyList", "metadata": {"resourceVersion": "1"}, "items": [` + s.policy + `]}`
	case "p":
		answer = s.policy
	case "s":
		answer = fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}, "data": {"p": %q}}`, s.secret)
	case "shop":
		answer = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "u-shop", "labels": ` + s.labels + `}}`
	case "namespaces":
		answer = `{"apiVersion": "v1", "kind": "NamespaceList", "metadata": {"resourceVersion": "1"}, "items": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "u-shop", "labels": ` + s.labels + `}}]}`
	}
	s.mu.Unlock()
	if answer != "" {
		fmt.Fprint(w, answer)
		return
	}
	s.tamperedServer.ServeHTTP(w, r)
}

// begin makes all as it was, but for the objects.
func (s *meanwhileServer) begin(objects map[string]map[string]any, at int, act func()) {
	s.lay(objects)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policy, s.secret, s.labels = meanwhilePolicy, tamperedSecret, `{"tier": "gold"}`
	s.requests, s.at, s.act, s.acted = nil, at, act, 0
}

// edit changes a ConfigMap, as another client does.
func (s *meanwhileServer) edit(name, field, value, uid string) {
	object := s.objects[name]
	if object == nil {
		return
	}
	data, metadata := maps.Clone(object["data"].(map[string]any)), maps.Clone(object["metadata"].(map[string]any))
	if field != "" {
		data[field] = value
	}
	metadata["resourceVersion"] = metadata["resourceVersion"].(string) + "1"
	if uid != "" {
		metadata["uid"] = uid
	}
	s.objects[name] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
}

// meanwhiles are what others do between two requests.
func (s *meanwhileServer) meanwhiles() map[string]func() {
	return map[string]func(){
		"nothing":                     func() {},
		"a field is written":          func() { s.edit("a", "level", "zzz", "") },
		"another field is written":    func() { s.edit("b", "other", "zzz", "") },
		"what is wanted is written":   func() { s.edit("a", "level", "info", "") },
		"the object is deleted":       func() { delete(s.objects, "a") },
		"the object is made again":    func() { s.edit("a", "", "", "u-2") },
		"the other one is made again": func() { s.edit("b", "level", "debug", "u-2") },
		"what is read changes":        func() { s.edit("c", "level", "evil", "") },
		"what is read is deleted":     func() { delete(s.objects, "c") },
		"the trigger changes":         func() { s.edit("c", "other", "evil", "") },
		"the Secret changes":          func() { s.secret = "b3RoZXItb3RoZXItb3RoZXI=" },
		"the Namespace changes":       func() { s.labels = `{"tier": "evil"}` },
		"the policy changes":          func() { s.policy = strings.ReplaceAll(s.policy, `{{ conf.data.level }}`, "evil") },
		"the policy is deleted":       func() { s.policy = "" },
	}
}

// newMeanwhile starts a server and makes it the cluster of the commands that follow with --kubeconfig.
func newMeanwhile(t *testing.T, dir string) (s *meanwhileServer, kubeconfig string) {
	t.Helper()
	s = &meanwhileServer{tamperedServer: &tamperedServer{uid: "u"}}
	s.reset()
	server := serve(t, discovery(
		"v1 configmaps ConfigMap get,list,patch", "v1 secrets Secret get,list", "v1 namespaces Namespace get,list cluster",
		"authorization.k8s.io/v1 selfsubjectaccessreviews SelfSubjectAccessReview create cluster", "kyverno.io/v1 clusterpolicies ClusterPolicy get,list cluster",
	), s.ServeHTTP)
	return s, write(t, dir, "kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: c, cluster: {server: %q}}],
		contexts: [{name: a, context: {cluster: c}}]}`, server.URL))
}

// meanwhileMode is a way to write.
type meanwhileMode struct {
	objects map[string]map[string]any // as they are before
	args    []string
	journal string // the file "edited"
	noted   bool   // the UIDs of the objects are known before the run
}

// meanwhileModes are those that write once, with the files that they need.
func meanwhileModes(x *tampered, s *meanwhileServer) map[string]meanwhileMode {
	x.t.Helper()
	before := maps.Clone(s.objects)
	planFile, record, edited := filepath.Join(x.dir, "plan.json"), filepath.Join(x.dir, "run.jsonl"), filepath.Join(x.dir, "edited")
	s.begin(before, -1, nil)
	if code, out, errOut := x.run("preview", "configmaps", "-n", "shop", "--from-cluster", "--save", planFile); code != process.ExitChanges {
		x.t.Fatalf("exit code %d:\n%s%s", code, out, errOut)
	}
	s.begin(before, -1, nil)
	if code, _, errOut := x.run("apply-existing", "--plan", planFile, "--concurrency=1", "--journal", record); code != process.ExitOK {
		x.t.Fatalf("exit code %d:\n%s", code, errOut)
	}
	after := maps.Clone(s.objects)
	text, err := os.ReadFile(record)
	if err != nil {
		x.t.Fatal(err)
	}
	begun := strings.Join(strings.SplitAfter(string(text), "\n")[:5], "") // header, two entries, beginning, attempt
	all := []string{"-o", "diff", "--color=never", "--concurrency=1", "--on-error=continue", "--journal", filepath.Join(x.dir, "new")}
	return map[string]meanwhileMode{
		"--yes":      {before, append([]string{"apply-existing", "configmaps", "-n", "shop", "--from-cluster", "--yes"}, all...), "", false},
		"--plan":     {before, append([]string{"apply-existing", "--plan", planFile}, all...), "", true},
		"--resume":   {before, append([]string{"apply-existing", "--resume", edited, "--yes"}, all[:5]...), begun, true},
		"undo":       {after, append([]string{"undo", edited, "--yes"}, all...), string(text), false},
		"--contexts": {before, append([]string{"apply-existing", "configmaps", "-n", "shop", "--from-cluster", "--yes", "--contexts=a"}, all[:5]...), "", false},
	}
}

// Whatever happens in a cluster before whichever request of a run, in each of its modes, nothing is written
// that was not shown, nor to an object that took the place of another one.
func TestWhatChangesBeforeEachRequest(t *testing.T) {
	tier.NotShort(t)
	x := &tampered{t: t, dir: t.TempDir(), counts: map[string]int{}}
	t.Setenv("XDG_STATE_HOME", x.dir)
	t.Setenv("KUBECACHEDIR", t.TempDir())
	s, kubeconfig := newMeanwhile(t, x.dir)
	t.Setenv("KUBECONFIG", kubeconfig)
	for mode, c := range meanwhileModes(x, s) {
		run := func(at int, act func()) (code int, shown, out, errOut string) {
			write(t, x.dir, "edited", c.journal)
			_ = os.RemoveAll(filepath.Join(x.dir, "new"))
			s.begin(c.objects, at, act)
			code, out, errOut = x.run(c.args...)
			shown, _, _ = strings.Cut(out, " evaluated:") // what follows is shown after the writes
			return code, shown, out, errOut
		}
		code, _, out, errOut := run(-1, nil)
		if code != process.ExitOK || len(s.writes) == 0 {
			t.Fatalf("%s: exit code %d, %q\n%s%s", mode, code, s.writes, out, errOut)
		}
		requests := slices.Clone(s.requests)
		listed := slices.IndexFunc(requests, func(r string) bool { return strings.Contains(r, "/shop/configmaps") })
		if c.noted {
			listed = -1
		}
		s.eachMeanwhile(requests, func(at int, what string) {
			code, shown, out, errOut := run(at, s.meanwhiles()[what])
			s.check(t, fmt.Sprintf("%s, %s before request %d (%s)", mode, what, at, requests[at]), shownLines(shown), out+errOut)
			if at > listed {
				s.checkNotAgain(t, fmt.Sprintf("%s, %s before request %d (%s)", mode, what, at, requests[at]), what)
			}
			x.counts[fmt.Sprintf("%s %d", mode, code)]++
		})
	}
	t.Log(x.counts)
}

// eachMeanwhile calls try with what is to happen before a request, for a part of all such pairs, or all with
// -every-mutation.
func (s *meanwhileServer) eachMeanwhile(requests []string, try func(at int, what string)) {
	for at := range requests {
		for n, what := range slices.Sorted(maps.Keys(s.meanwhiles())) {
			if *everyMutation || (at+n)%tier.Pick(18, 6) == 0 {
				try(at, what)
			}
		}
	}
}

// check demands that what was written was shown, and no Secret.
func (s *meanwhileServer) check(t *testing.T, name string, lines []string, text string) {
	t.Helper()
	for _, line := range s.writes {
		if !slices.Contains(lines, strings.ReplaceAll(line, "of "+s.secret, "'***'")) {
			t.Errorf("%s: %q was written and not shown:\n%s", name, line, text)
		}
	}
	if strings.Contains(text, "panic") || strings.Contains(text, tamperedSecret) || strings.Contains(text, s.secret) {
		t.Errorf("%s:\n%s", name, text)
	}
}

// checkNotAgain demands that nothing was written to an object that was made again.
func (s *meanwhileServer) checkNotAgain(t *testing.T, name, what string) {
	t.Helper()
	object := map[string]string{"the object is made again": "a ", "the other one is made again": "b "}[what]
	for _, line := range s.writes[s.acted:] {
		if object != "" && strings.HasPrefix(line, object) {
			t.Errorf("%s: %q was written", name, line)
		}
	}
}
