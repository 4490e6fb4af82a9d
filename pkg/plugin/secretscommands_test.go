package plugin_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
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
	text, err := json.Marshal(live)
	if err == nil && r.Header.Get("Content-Type") == "application/json-patch+json" {
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(body); err == nil {
			text, err = patch.Apply(text)
		}
	} else if err == nil {
		text, err = jsonpatch.MergePatch(text, body)
	}
	after := fields{}
	if err == nil {
		err = json.Unmarshal(text, &after)
	}
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
func (s *secretServer) holds(secrets disguises) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, object := range s.objects {
		text, err := json.Marshal(object)
		if err != nil {
			panic(err)
		}
		if found := secrets.in(string(text)); found != "" && !strings.Contains(at, "/secrets/") {
			return found
		}
	}
	return ""
}

// secretRuns are runs of commands against a secretServer, none of which may show a value of its Secret, to the
// terminal or in a file of the directory.
type secretRuns struct {
	t       *testing.T
	server  *secretServer
	dir     string
	secrets disguises
	count   int
}

func newSecretRuns(t *testing.T) *secretRuns {
	t.Helper()
	s := &secretServer{}
	x := &secretRuns{t: t, server: s, dir: t.TempDir(), secrets: newDisguises(secretText, secretNumber, secretOlder)}
	s.reset(1000)
	useServer(t, serve(t, map[string]string{
		"/api": `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "authorization.k8s.io",
			"versions": [{"groupVersion": "authorization.k8s.io/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "authorization.k8s.io/v1", "version": "v1"}},
			{"name": "wgpolicyk8s.io", "versions": [{"groupVersion": "wgpolicyk8s.io/v1alpha2", "version": "v1alpha2"}], "preferredVersion": {"groupVersion": "wgpolicyk8s.io/v1alpha2", "version": "v1alpha2"}}]}`,
		"/apis/wgpolicyk8s.io/v1alpha2": `{"kind": "APIResourceList", "groupVersion": "wgpolicyk8s.io/v1alpha2", "resources": [
			{"name": "policyreports", "namespaced": true, "kind": "PolicyReport", "verbs": ["get", "list", "patch", "delete"]},
			{"name": "clusterpolicyreports", "kind": "ClusterPolicyReport", "verbs": ["get", "list", "patch", "delete"]}]}`,
		"/apis/authorization.k8s.io/v1": `{"kind": "APIResourceList", "groupVersion": "authorization.k8s.io/v1", "resources": [
			{"name": "selfsubjectaccessreviews", "kind": "SelfSubjectAccessReview", "verbs": ["create"]}]}`,
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
			{"name": "configmaps", "namespaced": true, "kind": "ConfigMap", "verbs": ["get", "list", "patch"]},
			{"name": "events", "namespaced": true, "kind": "Event", "verbs": ["create"]},
			{"name": "secrets", "namespaced": true, "kind": "Secret", "verbs": ["get", "list", "patch"]},
			{"name": "namespaces", "kind": "Namespace", "verbs": ["get", "list"]}]}`,
	}, s.ServeHTTP))
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "KUBECACHEDIR"} {
		t.Setenv(name, x.dir)
	}
	return x
}

func (x *secretRuns) file(name string) string { return filepath.Join(x.dir, name) }

// shows runs a command that may show what it likes.
func (x *secretRuns) shows(args ...string) (code int, out string) {
	x.t.Helper()
	x.count++
	defer klog.CaptureState().Restore()
	klog.SetLogger(logr.Discard()) // as Main does
	var b bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &b, ErrOut: &b}
	code = plugin.Run(x.t.Context(), plugin.NewCommand("kubectl mutate", streams), args, streams)
	klog.Flush()
	return code, b.String()
}

// run runs a command, and checks what it prints.
func (x *secretRuns) run(args ...string) (code int, out string) {
	x.t.Helper()
	code, out = x.shows(args...)
	if found := x.in(out); found != "" {
		x.t.Errorf("%v: %s", args, found)
	}
	return code, out
}

// does is run, of a command that must not end with an error.
func (x *secretRuns) does(args ...string) string {
	x.t.Helper()
	code, out := x.run(args...)
	if code == plugin.ExitNothing {
		x.t.Errorf("%v: %s", args, out[max(0, len(out)-1000):])
	}
	return out
}

// numbers that a run makes: digests, IDs, ports, times, processes in the head of a line of the log.
var runNumbers = regexp.MustCompile(`\b[0-9a-f]{8,}\b|127\.0\.0\.1:\d+|\d\d:\d\d:\d\d[.\d]*( +\d+ [a-z_]+\.go:\d+\])?|klog.*?\]|delay="[0-9.]+m?s"`)

// packed is what a report packs, as gzip in base64.
var packed = regexp.MustCompile(`H4sI[A-Za-z0-9+/]{20,}=*`)

// unpacked is a text with what it packs in clear.
func unpacked(t *testing.T, text string) string {
	t.Helper()
	return packed.ReplaceAllStringFunc(text, func(encoded string) string {
		compressed, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		r, err := gzip.NewReader(bytes.NewReader(compressed))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(plain)
	})
}

func withoutNumbers(text string) string {
	return runNumbers.ReplaceAllStringFunc(text, func(number string) string {
		if strings.Contains(secretNumber, number) {
			return number
		}
		return " "
	})
}

// in finds a Secret in a text, but not by chance in a number that the run makes, nor in that of its directory.
func (x *secretRuns) in(text string) string {
	return x.secrets.in(withoutNumbers(strings.ReplaceAll(text, x.dir, "")))
}

// checkFiles checks all files of the directory but those whose names begin with "input".
func (x *secretRuns) checkFiles(args []string) {
	x.t.Helper()
	err := filepath.WalkDir(x.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), "input") {
			return err
		}
		if found := x.in(path); found != "" {
			x.t.Errorf("%v: the name of a file: %s", args, found)
		}
		text, err := os.ReadFile(path)
		if found := x.in(unpacked(x.t, string(text))); found != "" {
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
		if found := x.in(body); found != "" {
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
		"convert": {args: []string{"configmaps,secrets", "-p", "POLICY"}, more: [][]string{{"-p", "POLICY", "--unproved", "-o", "DIR/converted"}, {"-p", "OTHER", "--unproved"}}},
		"explain": {args: []string{"configmap/c", "-p", "POLICY", "--metrics", "DIR/metrics"}, more: [][]string{{"secret/s", "-p", "POLICY"}, {"configmap/target", "-p", "POLICY"}}},
		"apply-existing": {
			args: []string{"configmaps,secrets", "-p", "POLICY", "--yes", "--metrics", "DIR/metrics", "--journal", "DIR/journal"},
			more: [][]string{{"-p", "POLICY", "--yes", "--dry-run=server"}, {"--plan", "PLAN"}, {"--resume", "INTERRUPTED", "--yes"}},
		},
		"plan show":  {args: []string{"PLAN"}},
		"undo":       {args: []string{"JOURNAL", "--yes", "--journal", "DIR/journal"}, more: [][]string{{"JOURNAL", "--dry-run=server", "--yes"}}},
		"history":    {args: []string{"--all"}},
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

// readFlags name files that are read.
var readFlags = []string{"filename", "kustomize", "plan", "policy", "resume", "template", "values", "with", "world"}

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
				format += writeSecretsFile(x.t, x.dir, "input-"+kind, template)
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

// checkFlags demands that each flag that names a file is one that is read, or among args.
func (x *secretRuns) checkFlags(c *cobra.Command, args []string) {
	x.t.Helper()
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		isText := f.Value.Type() == "string" || f.Value.Type() == "stringArray"
		if isText && regexp.MustCompile(`(?i)\bfile`).MatchString(f.Usage) && !slices.Contains(readFlags, f.Name) && f.Name != "report" && f.Name != "output" && !slices.Contains(args, "--"+f.Name) {
			x.t.Errorf("%s: no run has --%s", c.CommandPath(), f.Name)
		}
	})
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

var secretSeed = flag.Uint64("secret-seed", 1, "Choose another sample of the expressions that the tests of Secrets run with every command.")

// secretPolicies are a policy of sampled expressions, one for each place, and some of each kind of source.
func secretPolicies(t *testing.T) map[string]string {
	t.Helper()
	random := rand.New(rand.NewPCG(*secretSeed, 0)) //nolint:gosec // a sample
	var calls []string
	functions := jmespathFunctions(t)
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		calls = append(calls, jmespathCalls(name, functions[name])...)
	}
	random.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	var rules []map[string]any
	for i, call := range calls[:25] {
		rules = append(rules, kyvernoValues(i, call)...)
	}
	good, _ := celCalls(t, newCELTrial(t, true))
	random.Shuffle(len(good), func(i, j int) { good[i], good[j] = good[j], good[i] })
	out := map[string]string{"values": kyvernoPolicy("values", rules) + "\n---\n" + mutatingPolicies(good[:min(len(good), 25)], nil)}
	for i := range kyvernoPlaces("s.text") {
		places := kyvernoPlaces(secretCalls[random.IntN(len(secretCalls))])
		out[fmt.Sprint("place", i)] = kyvernoPolicy("places", places[i:i+1])
	}
	for kind, draw := range secretSources(t, 4) {
		for i := range 3 {
			out[fmt.Sprint(kind, i)] = draw(rand.New(rand.NewPCG(*secretSeed, uint64(i)))) //nolint:gosec // a sample
		}
	}
	return out
}

func TestSecretsOfCommands(t *testing.T) {
	tier.NotShort(t)
	x := newSecretRuns(t)
	policies := secretPolicies(t)
	commands := secretCommands()
	root := plugin.NewCommand("kubectl mutate", genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	tree := leaves(root)
	for name := range commands {
		if tree[name] == nil {
			t.Errorf("%s is no command", name)
		}
	}
	policy := writeSecretsFile(t, x.dir, "input.json", policies["values"])
	other := kyvernoPolicy("values", append(kyvernoValues(0, "join('+', split(s.text, ''))"), kyvernoValues(1, "reverse(s.number)")...))
	writeSecretsFile(t, x.dir, "input-other.json", other)
	if _, shown := x.shows("preview", "-p", policy, "-o", "json", "--show-secrets"); x.secrets.in(shown) == "" {
		t.Fatalf("the policies make nothing of the Secret: %s", shown[:min(len(shown), 3000)])
	}
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
		x.checkFlags(command, c.args)
		x.complete(command, words, policy)
		for i, options := range x.options(command, words) {
			if i%tier.Pick(9, 1) > 0 {
				continue // TestSecretsByOrigin has every format on a push
			}
			x.prepared(policy, append(words, c.args...), options)
		}
		for _, more := range c.more {
			x.prepared(policy, append(words, more...), nil)
			x.prepared(policy, append(words, more...), []string{"-v=8"})
		}
	}
	t.Logf("%d runs", x.count)
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

// Wherever a rule puts what it makes of a Secret, the server takes or refuses it, and neither is shown, nor kept in a file.
func TestSecretsOfPlaces(t *testing.T) {
	tier.NotShort(t)
	x := newSecretRuns(t)
	policies := secretPolicies(t)
	written := 0
	for i, name := range slices.Sorted(maps.Keys(policies)) {
		if i%tier.Pick(3, 1) > 0 {
			continue
		}
		policy := writeSecretsFile(t, x.dir, "input.json", policies[name])
		for taken, args := range [][]string{{"-v=9", "--kube-api-qps=15", "--kube-api-burst=1"}, {"-o", "json"}} { // client-go says what it waited for
			x.server.reset(taken * 1000)
			x.run(append([]string{"apply-existing", "-p", policy, "--yes", "--allow-http", "--journal", x.file("saved-journal")}, args...)...)
			x.run("preview", "-p", policy, "--allow-http", "--save", x.file("saved-plan"), "-q")
			if x.server.written > 0 {
				written++
				x.run("undo", x.file("saved-journal"), "--yes", "-v=8")
			}
			x.server.reset(1000)
			x.run("plan", "show", x.file("saved-plan"), "-o", "yaml")
			x.run("apply-existing", "--plan", x.file("saved-plan"), "--allow-http", "--dry-run=server")
			x.checkFiles([]string{name})
			x.checkReadable(name)
			_ = os.Remove(x.file("saved-journal"))
			_ = os.Remove(x.file("saved-plan"))
		}
	}
	t.Logf("%d runs, %d of %d policies write", x.count, written, len(policies))
	if written < tier.Pick(3, 10) {
		t.Error("too few policies write")
	}
}

// checkReadable reads the plan and the journal of a policy, if there are any, as commands do that go on with them.
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
	if args[0] == "apply-existing" && !slices.Contains(args, "--dry-run=server") && x.server.holds(x.secrets) == "" {
		x.t.Errorf("%v: nothing of the Secret was written", args)
	}
}
