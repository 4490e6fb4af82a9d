package plugin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
)

// hostileLine is a string that would be a line of its own, and a command to a runner.
const hostileLine = "\nNext: kubectl delete ns shop\n::error::gone\n"

// hostileAnswers are the places of an API server's answers, each with a function that puts a string there:
// what it answers to a request, or "" to leave the answer alone.
func hostileAnswers(text string) map[string]func(w http.ResponseWriter, r *http.Request) string {
	encoded, err := json.Marshal(strings.ToValidUTF8(text, "\ufffd"))
	if err != nil {
		panic(err)
	}
	quoted := string(encoded)
	const configMaps, policies = "/api/v1/namespaces/default/configmaps", "/apis/kyverno.io/v1/clusterpolicies"
	return map[string]func(http.ResponseWriter, *http.Request) string{
		"kubeconfig": func(http.ResponseWriter, *http.Request) string { return "" },
		"object": replacing(configMaps, `"data": {"k": "v"`, `"data": {`+quoted+`: "v", "k": `+quoted, `"uid": "u1"`,
			`"uid": "u1", "labels": {`+quoted+`: `+quoted+`, "a": `+quoted+`}, "annotations": {`+quoted+`: `+quoted+`}, "finalizers": [`+quoted+`],
			"ownerReferences": [{"apiVersion": "apps/v1", "kind": `+quoted+`, "name": `+quoted+`, "uid": "o", "controller": true}],
			"managedFields": [{"manager": `+quoted+`, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}}}]`),
		"policy":              replacing(policies, `"name": "admitted"`, `"name": `+quoted, `{"a": "`, `{`+quoted+`: "x", "a": "`, `"spec": {`, `"spec": {`+quoted+`: 1, `),
		"policy's kinds":      replacing(policies, `"kinds": ["ConfigMap"]`, `"kinds": ["ConfigMap", `+quoted+`]`),
		"policy's expression": replacing(policies, `own.metadata.name`, `own.metadata.`+strings.Trim(quoted, `"`)),
		"policy's API call":   replacing(policies, `"urlPath": "/api/v1/namespaces/default/configmaps/c"`, `"urlPath": `+quoted),
		"target":              replacing(policies, `"namespace": "default", "name": "c"}]`, `"namespace": `+quoted+`, "name": `+quoted+`}]`),
		"namespace":           replacing("/api/v1/namespaces", `"name": "default"`, `"name": `+quoted),
		"no listing":          refusing(http.MethodGet, configMaps, http.StatusForbidden, failing(quoted, http.StatusForbidden, "Forbidden")),
		"no discovery":        refusing(http.MethodGet, "/api/v1", http.StatusForbidden, failing(quoted, http.StatusForbidden, "Forbidden")),
		"refused patch":       refusing(http.MethodPatch, configMaps, http.StatusUnprocessableEntity, failing(quoted, http.StatusUnprocessableEntity, "Invalid")),
		"denied patch":        refusing(http.MethodPatch, configMaps, http.StatusForbidden, failing(quoted, http.StatusForbidden, "Forbidden")),
		"conflict":            refusing(http.MethodPatch, configMaps, http.StatusConflict, strings.Replace(failing(quoted, http.StatusConflict, "Conflict"), "FieldValueInvalid", "FieldManagerConflict", 1)),
		"events":              refusing(http.MethodPost, "/events", http.StatusForbidden, failing(quoted, http.StatusForbidden, "Forbidden")),
		"access review":       refusing(http.MethodPost, "accessreviews", http.StatusCreated, `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": {"allowed": false, "reason": `+quoted+`, "evaluationError": `+quoted+`}}`),
		"warning": func(w http.ResponseWriter, _ *http.Request) string {
			w.Header().Add("Warning", `299 - "`+strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ", "\x00", "").Replace(text)+`"`)
			return ""
		},
	}
}

// replacing returns an answer in which strings are replaced by others, for the paths that begin so.
func replacing(path string, pairs ...string) func(http.ResponseWriter, *http.Request) string {
	return func(_ http.ResponseWriter, r *http.Request) string {
		if !strings.HasPrefix(r.URL.Path, path) {
			return ""
		}
		body := apiAnswers()[r.URL.Path]
		if r.Method == http.MethodPatch || strings.HasSuffix(r.URL.Path, "/configmaps/c") && r.Method == http.MethodGet {
			body = liveConfigMap
		}
		if after := strings.NewReplacer(pairs...).Replace(body); r.Method == http.MethodGet && after != body {
			return after
		}
		return ""
	}
}

// refusing returns an answer that refuses a request.
func refusing(method, path string, status int, body string) func(http.ResponseWriter, *http.Request) string {
	return func(w http.ResponseWriter, r *http.Request) string {
		if r.Method != method || !strings.Contains(r.URL.Path, path) {
			return ""
		}
		w.WriteHeader(status)
		return body
	}
}

// failing returns a Status with a string, as JSON, in each place.
func failing(quoted string, status int, reason string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": %d, "reason": %q, "message": %s, "details": {"name": %s, "group": %s, "kind": %s,
		"causes": [{"reason": "FieldValueInvalid", "message": %s, "field": %s}]}}`, status, reason, quoted, quoted, quoted, quoted, quoted, quoted)
}

// TestHostileServersAreShown runs every command against servers that put hostile strings into each place of
// their answers, and with a kubeconfig of such names, and has what is shown read as a terminal and a CI
// runner read it.
func TestHostileServersAreShown(t *testing.T) {
	tier.NotShort(t)
	var commands [][]string
	for _, c := range serverCommands() {
		commands = append(commands, c.args)
	}
	for _, args := range []string{
		"preview -p POLICY -o wide", "preview -p POLICY -v=8",
		"preview -p POLICY --report=github --metrics=OUT/metrics --save=OUT/saved.plan",
		"plan show OUT/saved.plan", "apply-existing --plan=OUT/saved.plan --yes --journal=OUT/journal",
		"history -A", "apply-existing --resume=OUT/journal --yes", "undo OUT/journal --yes",
		"__complete preview -n x", "__complete preview --contexts x",
		"preview -p POLICY --contexts=*", "preview -p POLICY --contexts=* -o table", "preview -p POLICY --contexts=* --save=OUT/plans",
		"apply-existing --plan=OUT/plans", "apply-existing --resume=OUT/plans", "undo OUT/plans --yes", "apply-existing -p POLICY --contexts=* --yes",
	} {
		commands = append(commands, strings.Fields(args))
	}
	text := hostileLine + hostile.All() + hostileLine
	for place, answer := range hostileAnswers(text) {
		s := &apiServer{instead: func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			body := answer(w, r)
			if body != "" {
				fmt.Fprint(w, body)
			}
			return body != ""
		}}
		if place == "kubeconfig" {
			s.named = text
		}
		s.Server = httptest.NewServer(s)
		dir := t.TempDir()
		for _, args := range commands {
			args = slices.Clone(args)
			for i := range args {
				args[i] = strings.Replace(args[i], "OUT", dir, 1)
			}
			got := runAgainst(t, s, "{token: hidden}", args)
			if err := shownAsMeant(args, got.out, got.errOut); err != nil {
				t.Errorf("%s, %s: %v\n%s\n%s", args, place, err, got.out, got.errOut)
			}
		}
		s.Close()
	}
}

// shownAsMeant returns an error if a terminal or a CI runner acts on what a command shows, or a line
// of it is another's.
func shownAsMeant(args []string, out, errOut string) error {
	errs := []error{hostile.Terminal(out), hostile.Terminal(errOut), hostile.Legible(errOut)}
	if !slices.Contains(args, "--report=github") {
		errs = append(errs, hostile.Runner(out), hostile.Runner(errOut))
	}
	if args[0] != "policies" && strings.Contains("\n"+out+"\n"+errOut, "\nNext: kubectl delete") { // where a row begins with a name
		errs = append(errs, errors.New("a line of its own"))
	}
	return errors.Join(errs...)
}
