package plugin_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// secretServer is an API server with the objects of secretWorld. It takes each patch.
type secretServer struct {
	mu      sync.Mutex
	objects map[string]map[string]any // by path
	taken   int                       // patches that it takes before it refuses all, and quotes what it was sent
	written int
	created []string // the bodies of the objects that were created, and of reports
	reports []string // those of reports, which may be listed
}

func (s *secretServer) reset(taken int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects, s.taken, s.written, s.reports = map[string]map[string]any{}, taken, 0, nil
	for i, text := range strings.Split(secretWorld(), "\n---\n") {
		object := map[string]any{}
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			panic(err)
		}
		metadata := object["metadata"].(map[string]any)
		metadata["uid"], metadata["resourceVersion"] = fmt.Sprint("u", i), fmt.Sprint(i+1)
		at := "/api/v1/namespaces/"
		if kind := object["kind"].(string); kind != "Namespace" {
			at += "default/" + strings.ToLower(kind) + "s/"
		}
		s.objects[at+metadata["name"].(string)] = object
	}
}

func (s *secretServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	name := path.Base(r.URL.Path)
	object := s.objects[r.URL.Path]
	if object == nil || r.Method == http.MethodPatch {
		w.Header().Set("Warning", fmt.Sprintf("299 - %q", "you asked for "+r.URL.Path+" with "+string(body)))
	}
	switch {
	case r.Method == http.MethodPost && name == "selfsubjectaccessreviews":
		fmt.Fprint(w, `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": {"allowed": true}}`)
	case r.Method == http.MethodPost:
		s.created = append(s.created, string(body))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	case strings.HasPrefix(r.URL.Path, reportsPath):
		s.report(w, r, body)
	case name == "configmaps" || name == "secrets" || name == "namespaces":
		var items []any
		for _, at := range slices.Sorted(maps.Keys(s.objects)) {
			if path.Base(path.Dir(at)) == name {
				items = append(items, s.objects[at])
			}
		}
		kind := map[string]string{"configmaps": "ConfigMapList", "secrets": "SecretList", "namespaces": "NamespaceList"}[name]
		answer(w, fields{"apiVersion": "v1", "kind": kind, "metadata": fields{"resourceVersion": "9"}, "items": items})
	case name == "kube-system":
		fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "u"}}`)
	case object == nil:
		refuse(w, http.StatusNotFound, "NotFound", "there is no "+r.URL.String(), "")
	case r.Method == http.MethodPatch:
		s.patch(w, r, object, body)
	default:
		answer(w, object)
	}
}

// reportsPath is where the reports of previews are.
const reportsPath = "/apis/wgpolicyk8s.io/v1alpha2/"

// report keeps the reports that are written, and lists them.
func (s *secretServer) report(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Method == http.MethodPatch {
		s.created, s.reports = append(s.created, string(body)), append(s.reports, string(body))
		_, _ = w.Write(body)
		return
	}
	kind := map[string]string{"policyreports": "PolicyReportList", "clusterpolicyreports": "ClusterPolicyReportList"}[path.Base(r.URL.Path)]
	var items []any
	for _, text := range s.reports {
		report := fields{}
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			panic(err)
		}
		if report["kind"].(string)+"List" == kind {
			items = append(items, report)
		}
	}
	answer(w, fields{"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": kind, "metadata": fields{"resourceVersion": "9"}, "items": items})
}

func (s *secretServer) patch(w http.ResponseWriter, r *http.Request, live fields, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	after, err := patchedBy(r, live)
	if err != nil || s.taken <= 0 {
		refuse(w, http.StatusUnprocessableEntity, "Invalid", fmt.Sprintf("ConfigMap %q is invalid, it holds %s and %v", body, body, err), string(body))
		return
	}
	if r.URL.Query().Get("dryRun") == "" {
		s.taken--
		s.written++
		after["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(100 + s.written)
		s.objects[r.URL.Path] = after
	}
	answer(w, after)
}

// refuse answers with a Status that quotes a value, if any.
func refuse(w http.ResponseWriter, code int, reason, message, value string) {
	status := fields{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "code": code, "message": message}
	if value != "" {
		status["details"] = fields{"causes": []any{
			fields{"reason": "FieldValueInvalid", "field": "data." + value, "message": fmt.Sprintf("Invalid value: %q: must not be %s", value, value)},
			fields{"reason": "FieldValueForbidden", "field": "data", "message": "Forbidden: may not be " + value},
		}}
	}
	w.WriteHeader(code)
	answer(w, status)
}

// holds returns what is found of the Secret in what is not the Secret.
func (s *secretServer) holds() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, object := range s.objects {
		text, err := json.Marshal(object)
		if err != nil {
			panic(err)
		}
		if found := secretIn(string(text)); found != "" && !strings.Contains(at, "/secrets/") {
			return found
		}
	}
	return ""
}

// secretRuns are runs of commands against a secretServer, none of which may show a value of its Secret, to
// the terminal or in a file of the directory.
type secretRuns struct {
	t      *testing.T
	server *secretServer
	dir    string
}

func newSecretRuns(t *testing.T) *secretRuns {
	t.Helper()
	s := &secretServer{}
	x := &secretRuns{t: t, server: s, dir: t.TempDir()}
	s.reset(1000)
	useServer(t, serve(t, discovery(
		"v1 configmaps ConfigMap get,list,patch", "v1 events Event create", "v1 secrets Secret get,list,patch", "v1 namespaces Namespace get,list cluster",
		"authorization.k8s.io/v1 selfsubjectaccessreviews SelfSubjectAccessReview create cluster",
		"wgpolicyk8s.io/v1alpha2 policyreports PolicyReport get,list,patch,delete", "wgpolicyk8s.io/v1alpha2 clusterpolicyreports ClusterPolicyReport get,list,patch,delete cluster",
	), s.ServeHTTP))
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "KUBECACHEDIR"} {
		t.Setenv(name, x.dir)
	}
	return x
}

func (x *secretRuns) file(name string) string { return filepath.Join(x.dir, name) }

// run runs a command, and checks what it prints.
func (x *secretRuns) run(args ...string) (code int, out string) {
	x.t.Helper()
	code, out = secretsRun(x.t, args...)
	if found := secretIn(strings.ReplaceAll(out, x.dir, "")); found != "" {
		x.t.Errorf("%v: %s", args, found)
	}
	return code, out
}

// does is run, of a command that must not end with an error.
func (x *secretRuns) does(args ...string) string {
	x.t.Helper()
	code, out := x.run(args...)
	if code == process.ExitNothing {
		x.t.Errorf("%v: %s", args, out[max(0, len(out)-1000):])
	}
	return out
}

// checkFiles checks all files of the directory but those whose names begin with "input".
func (x *secretRuns) checkFiles(args []string) {
	x.t.Helper()
	err := filepath.WalkDir(x.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), "input") {
			return err
		}
		if found := secretIn(path); found != "" {
			x.t.Errorf("%v: the name of a file: %s", args, found)
		}
		text, err := os.ReadFile(path)
		if found := secretIn(unpacked(x.t, string(text))); found != "" {
			x.t.Errorf("%v: %s: %s", args, entry.Name(), found)
		}
		if err == nil && !strings.HasPrefix(entry.Name(), "saved") {
			err = os.Remove(path)
		}
		return err
	})
	if err != nil {
		x.t.Error(err)
	}
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	for _, body := range x.server.created {
		if found := secretIn(body); found != "" {
			x.t.Errorf("%v: created: %s", args, found)
		}
	}
	x.server.created = nil
}

// A secretCommand says how a command is run.
type secretCommand struct {
	args []string // POLICY, PLAN, JOURNAL and DIR stand for paths
	// more are other ways to run it.
	more [][]string
	// harmless says why it can show nothing of a Secret.
	harmless string
}

// secretCommands are all commands, by their paths below the root.
func secretCommands() map[string]secretCommand {
	return map[string]secretCommand{
		"preview": {args: []string{"configmaps,secrets", "-p", "POLICY", "--save", "DIR/plan", "--metrics", "DIR/metrics"}, more: [][]string{{"-p", "POLICY", "--validate=server"}, {"-p", "POLICY", "--write-reports", "policyreport", "--explain"}}},
		"compare": {args: []string{"configmaps,secrets", "-p", "POLICY", "--with", "OTHER"}, more: [][]string{{"-p", "OTHER", "--with", "POLICY"}}},
		"convert": {args: []string{"configmaps,secrets", "-p", "POLICY"}, more: [][]string{{"-p", "POLICY", "--unverified", "-o", "DIR/converted"}, {"-p", "OTHER", "--unverified"}}},
		"explain": {args: []string{"configmap/c", "-p", "POLICY", "--metrics", "DIR/metrics"}, more: [][]string{{"secret/s", "-p", "POLICY"}, {"configmap/target", "-p", "POLICY"}}},
		"apply-existing": {
			args: []string{"configmaps,secrets", "-p", "POLICY", "--yes", "--metrics", "DIR/metrics", "--journal", "DIR/journal"},
			more: [][]string{{"-p", "POLICY", "--yes", "--dry-run=server"}, {"--plan", "PLAN"}, {"--resume", "INTERRUPTED", "--yes"}},
		},
		"plan show":  {args: []string{"PLAN"}},
		"undo":       {args: []string{"JOURNAL", "--yes", "--journal", "DIR/journal"}, more: [][]string{{"JOURNAL", "--dry-run=server", "--yes"}}},
		"history":    {args: []string{"--all"}},
		"fix":        {args: []string{"-p", "POLICY", "-f", "DIR/input-world.yaml"}, more: [][]string{{"-p", "POLICY", "-f", "DIR/input-world.yaml", "--explain"}, {"-p", "POLICY", "-f", "DIR/input-world.yaml", "--check"}}},
		"test":       {args: []string{"DIR/input-test.yaml"}},
		"policies":   {args: []string{"-p", "POLICY"}},
		"rbac":       {args: []string{"-p", "POLICY", "--for=apply"}},
		"job":        {args: []string{"-p", "POLICY", "--apply", "--shards=2"}},
		"summary":    {args: []string{"-A"}},
		"plan":       {harmless: "prints its help"},
		"completion": {harmless: "prints a script"},
		"version":    {harmless: "prints the version"},
		"options":    {harmless: "prints its help"},
	}
}

// completed are the words that the program offers behind others.
func (x *secretRuns) completed(args ...string) []string {
	x.t.Helper()
	_, out := x.run(append([]string{cobra.ShellCompNoDescRequestCmd}, args...)...)
	words := strings.Fields(out)
	if i := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, ":") }); i >= 0 {
		words = words[:i]
	}
	return words
}

// options are the flags of all formats and reports of a command.
func (x *secretRuns) options(c *cobra.Command, words []string) [][]string {
	x.t.Helper()
	out := [][]string{{"-v=10"}}
	templates := map[string]string{
		"jsonpath": "{.changes}{.results}", "jsonpath-as-json": "{.changes}", "go-template": "{{.}}", "custom-columns": "AFTER:.changes,FIELDS:.fields,STEPS:.steps",
	}
	if c.Flags().Lookup("output") != nil && c.Name() != "version" && c.Name() != "convert" { // which writes to a directory
		all := x.completed(append(words, "-o", "")...)
		if len(all) < 2 {
			x.t.Errorf("%v: formats %v", words, all)
		}
		for _, format := range all {
			name, needs := strings.CutSuffix(format, "=")
			kind, isFile := strings.CutSuffix(name, "-file")
			template := templates[kind]
			switch {
			case !needs:
			case template == "":
				x.t.Errorf("no template for -o %s", format)
			case isFile:
				if kind == "custom-columns" {
					template = "AFTER\n.after"
				}
				format += write(x.t, x.dir, "input-"+kind, template)
			default:
				format += template
			}
			if format == "manifests" && c.Name() == "show" {
				continue // which needs whole objects
			}
			out = append(out, []string{"-o", format})
		}
	}
	if c.Flags().Lookup("report") != nil {
		for _, report := range x.completed(append(words, "--report", "")...) {
			out = append(out, []string{"--report", report + x.file("report-"+strings.TrimSuffix(report, "="))})
		}
	}
	for i, flags := range slices.Clone(out) {
		explains := c.Flags().Lookup("explain") != nil && (len(flags) < 2 || !slices.Contains([]string{"table", "name", "manifests", "json-patch"}, flags[1]))
		if explains {
			out[i] = append(flags, "--explain")
		}
		if c.Flags().Lookup("group-by") != nil && slices.Contains(flags, "diff") {
			for _, by := range x.completed(append(words, "--group-by", "")...) {
				out = append(out, append(slices.Clone(flags), "--group-by", by))
			}
		}
	}
	return out
}

// leaves are the commands that run, by their paths below the root.
func leaves(c *cobra.Command, path ...string) map[string]*cobra.Command {
	out := map[string]*cobra.Command{}
	for _, below := range c.Commands() {
		at := append(slices.Clone(path), below.Name())
		if below.Runnable() && below.Name() != "help" {
			out[strings.Join(at, " ")] = below
		}
		maps.Copy(out, leaves(below, at...))
	}
	return out
}

func TestSecretsOfCommands(t *testing.T) {
	tier.NotShort(t)
	x := newSecretRuns(t)
	commands := secretCommands()
	root := plugin.NewCommand("kubectl mutate", genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}, nil)
	tree := leaves(root)
	for name := range commands {
		if tree[name] == nil {
			t.Errorf("%s is no command", name)
		}
	}
	places := kyvernoPlaces("s.text")
	policy := write(t, x.dir, "input.json", kyvernoPolicy("values", places[:4])+"\n---\n"+celPolicy(true, "m", celPlaces("variables.s.text")[0]))
	write(t, x.dir, "input-other.json", kyvernoPolicy("values", kyvernoPlaces("s.number")[:2]))
	write(t, x.dir, "input-world.yaml", secretWorld())
	write(t, x.dir, "input-wanted.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}, data: {f: wanted}}")
	write(t, x.dir, "input-test.yaml", `{apiVersion: cli.kyverno.io/v1alpha1, kind: Test, metadata: {name: t}, policies: [input.json], resources: [input-world.yaml], results: [
		{policy: values, rule: r0, kind: ConfigMap, resources: [c], result: skip},
		{policy: values, rule: r1, kind: ConfigMap, resources: [c], result: pass, patchedResources: input-wanted.yaml}]}`)
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		c, command := commands[name], tree[name]
		if c.harmless != "" {
			continue
		}
		if len(c.args) == 0 {
			t.Errorf("%s: no row says how it is run", name)
			continue
		}
		words := strings.Fields(name)
		x.complete(command, words, policy)
		for _, options := range x.options(command, words) {
			x.prepared(policy, append(words, c.args...), options)
		}
		for _, more := range c.more {
			x.prepared(policy, append(words, more...), []string{"-v=8"})
		}
	}
}

// Wherever a rule puts what it makes of a Secret, the server takes or refuses it, and neither is shown, nor
// kept in a file.
func TestSecretsThatAServerRefuses(t *testing.T) {
	tier.NotShort(t)
	x := newSecretRuns(t)
	written := 0
	for name, policies := range secretPolicies() {
		policy := write(t, x.dir, "input.json", policies)
		verbose := []string{"-v=9"}
		if strings.Contains(policies, `"targets"`) {
			verbose = append(verbose, "--kube-api-qps=15", "--kube-api-burst=1") // client-go says what it waited for
		}
		for taken, args := range [][]string{verbose, {"-o", "json"}} {
			x.server.reset(taken * 1000)
			x.run(append([]string{"apply-existing", "-p", policy, "--yes", "--allow-http", "--journal", x.file("saved-journal")}, args...)...)
			if x.server.written > 0 {
				written++
				x.run("undo", x.file("saved-journal"), "--yes", "-v=8")
			}
			x.checkReadable(name)
			_ = os.Remove(x.file("saved-journal"))
		}
		x.server.reset(1000)
		x.run("preview", "-p", policy, "--allow-http", "--save", x.file("saved-plan"), "-q")
		x.run("plan", "show", x.file("saved-plan"), "-o", "yaml")
		x.run("apply-existing", "--plan", x.file("saved-plan"), "--allow-http", "--dry-run=server")
		x.checkFiles([]string{name})
		x.checkReadable(name)
		_ = os.Remove(x.file("saved-plan"))
	}
	if written < 10 {
		t.Errorf("%d policies write", written)
	}
}

// complete completes the arguments and flags of a command.
func (x *secretRuns) complete(c *cobra.Command, words []string, policy string) {
	x.t.Helper()
	for _, begun := range []string{"", "configmap/", "secret/"} {
		x.completed(append(slices.Clone(words), begun)...)
	}
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		typed := []string{"--" + f.Name, ""}
		if c.Flags().Lookup("policy") != nil {
			typed = append([]string{"-p", policy}, typed...)
		}
		if complete, ok := c.GetFlagCompletionFunc(f.Name); ok && complete != nil {
			x.completed(append(words[:len(words):len(words)], typed...)...)
		}
	})
}

// checkReadable reads the plan and the journal of a policy, if there are any, as commands do that go on with
// them.
func (x *secretRuns) checkReadable(policy string) {
	x.t.Helper()
	if _, err := plan.Load(x.file("saved-plan")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		x.t.Errorf("%s: %v", policy, err)
	}
	if _, err := journal.Read(x.file("saved-journal")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		x.t.Errorf("%s: %v", policy, err)
	}
}

// prepared runs a command with what it needs.
func (x *secretRuns) prepared(policy string, args, options []string) {
	x.t.Helper()
	args = append(slices.Clone(args), options...)
	pairs := []string{"POLICY", policy, "DIR", x.dir, "OTHER", x.file("input-other.json")}
	x.server.reset(1000)
	plan, journal := x.file("saved-plan"), x.file("saved-journal")
	switch {
	case args[0] == "summary":
		x.does("preview", "-p", policy, "--write-reports", "policyreport", "-q")
		if len(x.server.reports) == 0 {
			x.t.Error("no report was written")
		}
	case slices.Contains(args, "PLAN"):
		_ = os.Remove(plan)
		x.does("preview", "-p", policy, "--save", plan, "-q", "-o", "name")
		pairs = append(pairs, "PLAN", plan)
	case slices.Contains(args, "JOURNAL"), slices.Contains(args, "INTERRUPTED"):
		_ = os.Remove(journal)
		if slices.Contains(args, "INTERRUPTED") {
			x.server.reset(1)
			x.run("apply-existing", "-p", policy, "--yes", "--journal", journal, "--concurrency=1")
			x.server.mu.Lock()
			x.server.taken = 1000
			x.server.mu.Unlock()
		} else {
			x.does("apply-existing", "-p", policy, "--yes", "--journal", journal)
		}
		pairs = append(pairs, "JOURNAL", journal, "INTERRUPTED", journal)
	}
	for i := range args {
		args[i] = strings.NewReplacer(pairs...).Replace(args[i])
	}
	x.does(args...)
	x.checkFiles(args)
	if args[0] == "apply-existing" && !slices.Contains(args, "--dry-run=server") && x.server.holds() == "" {
		x.t.Errorf("%v: nothing of the Secret was written", args)
	}
}
