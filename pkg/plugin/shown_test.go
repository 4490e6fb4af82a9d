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
)

// hostileLine is a text that would be a line of its own, and a command to a runner.
const hostileLine = "\nNext: kubectl delete ns shop\n::error::gone\n"

// hostileAnswers are the places of an API server's answers, each with a function that puts a text there:
// what it answers to a request, or "" to leave the answer alone.
func hostileAnswers(text string) map[string]func(w http.ResponseWriter, r *http.Request) string {
	encoded, err := json.Marshal(strings.ToValidUTF8(text, "\ufffd"))
	if err != nil {
		panic(err)
	}
	quoted := string(encoded)
	replace := func(path string, pairs ...string) func(http.ResponseWriter, *http.Request) string {
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
	refuse := func(method, path string, status int, body string) func(http.ResponseWriter, *http.Request) string {
		return func(w http.ResponseWriter, r *http.Request) string {
			if r.Method != method || !strings.Contains(r.URL.Path, path) {
				return ""
			}
			w.WriteHeader(status)
			return body
		}
	}
	failure := func(status int, reason string) string {
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": %d, "reason": %q, "message": %s, "details": {"name": %s, "group": %s, "kind": %s,
			"causes": [{"reason": "FieldValueInvalid", "message": %s, "field": %s}]}}`, status, reason, quoted, quoted, quoted, quoted, quoted, quoted)
	}
	const configMaps, policies = "/api/v1/namespaces/default/configmaps", "/apis/kyverno.io/v1/clusterpolicies"
	return map[string]func(http.ResponseWriter, *http.Request) string{
		"kubeconfig":           func(http.ResponseWriter, *http.Request) string { return "" },
		"object's name":        replace(configMaps, `"name": "c"`, `"name": `+quoted),
		"object's namespace":   replace(configMaps, `"namespace": "default"`, `"namespace": `+quoted),
		"object's version":     replace(configMaps, `"resourceVersion": "1"`, `"resourceVersion": `+quoted),
		"object's uid":         replace(configMaps, `"uid": "u1"`, `"uid": `+quoted),
		"object's kind":        replace(configMaps, `"kind": "ConfigMap",`, `"kind": `+quoted+`,`),
		"key":                  replace(configMaps, `"data": {"k"`, `"data": {`+quoted+`: "v", "k"`),
		"value":                replace(configMaps, `"k": "v"`, `"k": `+quoted),
		"label":                replace(configMaps, `"uid": "u1"`, `"uid": "u1", "labels": {`+quoted+`: `+quoted+`, "a": `+quoted+`}`),
		"annotation":           replace(configMaps, `"uid": "u1"`, `"uid": "u1", "annotations": {`+quoted+`: `+quoted+`}`),
		"owner":                replace(configMaps, `"uid": "u1"`, `"uid": "u1", "ownerReferences": [{"apiVersion": "apps/v1", "kind": `+quoted+`, "name": `+quoted+`, "uid": "o", "controller": true}]`),
		"field manager":        replace(configMaps, `"uid": "u1"`, `"uid": "u1", "managedFields": [{"manager": `+quoted+`, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}}}]`),
		"finalizer":            replace(configMaps, `"uid": "u1"`, `"uid": "u1", "finalizers": [`+quoted+`]`),
		"continue token":       replace(configMaps, `"metadata": {}`, `"metadata": {"continue": `+quoted+`}`),
		"policy's name":        replace(policies, `"name": "p"`, `"name": `+quoted),
		"rule's name":          replace(policies, `"name": "admitted"`, `"name": `+quoted),
		"policy's patch":       replace(policies, `{"a": "`, `{`+quoted+`: "x", "a": "`),
		"policy's kinds":       replace(policies, `"kinds": ["ConfigMap"]`, `"kinds": ["ConfigMap", `+quoted+`]`),
		"policy's expression":  replace(policies, `own.metadata.name`, `own.metadata.`+strings.Trim(quoted, `"`)),
		"policy's unknown":     replace(policies, `"spec": {`, `"spec": {`+quoted+`: 1, `),
		"policy's API call":    replace(policies, `"urlPath": "/api/v1/namespaces/default/configmaps/c"`, `"urlPath": `+quoted),
		"target":               replace(policies, `"namespace": "default", "name": "c"}]`, `"namespace": `+quoted+`, "name": `+quoted+`}]`),
		"namespace":            replace("/api/v1/namespaces", `"name": "default"`, `"name": `+quoted),
		"kind of discovery":    replace("/api/v1", `"kind": "ConfigMap"`, `"kind": `+quoted),
		"resource":             replace("/api/v1", `"name": "configmaps"`, `"name": `+quoted),
		"verb":                 replace("/api/v1", `"verbs": ["get"`, `"verbs": [`+quoted+`, "get"`),
		"group":                replace("/apis", `"name": "kyverno.io"`, `"name": `+quoted),
		"version of a group":   replace("/apis", `"version": "v1"`, `"version": `+quoted, `kyverno.io/v1`, `kyverno.io/`+strings.Trim(quoted, `"`)),
		"server's version":     replace("/version", `"gitVersion": "v1.37.0"`, `"gitVersion": `+quoted),
		"schema":               replace("/openapi", `"default": ""`, `"default": `+quoted+`, "description": `+quoted),
		"no JSON":              refuse(http.MethodGet, configMaps, http.StatusInternalServerError, text),
		"no listing":           refuse(http.MethodGet, configMaps, http.StatusForbidden, failure(http.StatusForbidden, "Forbidden")),
		"no listing, reason":   refuse(http.MethodGet, configMaps, http.StatusConflict, strings.Replace(failure(http.StatusConflict, "x"), `"reason": "x"`, `"reason": `+quoted, 1)),
		"no policies":          refuse(http.MethodGet, policies, http.StatusForbidden, failure(http.StatusForbidden, "Forbidden")),
		"no discovery":         refuse(http.MethodGet, "/api/v1", http.StatusInternalServerError, failure(http.StatusInternalServerError, "InternalError")),
		"refused patch":        refuse(http.MethodPatch, configMaps, http.StatusUnprocessableEntity, failure(http.StatusUnprocessableEntity, "Invalid")),
		"denied patch":         refuse(http.MethodPatch, configMaps, http.StatusForbidden, failure(http.StatusForbidden, "Forbidden")),
		"conflict":             refuse(http.MethodPatch, configMaps, http.StatusConflict, strings.Replace(failure(http.StatusConflict, "Conflict"), "FieldValueInvalid", "FieldManagerConflict", 1)),
		"events":               refuse(http.MethodPost, "/events", http.StatusForbidden, failure(http.StatusForbidden, "Forbidden")),
		"access review":        refuse(http.MethodPost, "accessreviews", http.StatusCreated, `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": {"allowed": false, "reason": `+quoted+`, "evaluationError": `+quoted+`}}`),
		"failed access review": refuse(http.MethodPost, "accessreviews", http.StatusInternalServerError, failure(http.StatusInternalServerError, "InternalError")),
		"warning": func(w http.ResponseWriter, _ *http.Request) string {
			w.Header().Add("Warning", `299 - "`+strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ", "\x00", "").Replace(text)+`"`)
			return ""
		},
	}
}

// TestHostileServersAreShown runs every command against servers that put hostile texts into each place of
// their answers, and with a kubeconfig of such names, and has what is shown read as a terminal and a CI
// runner read it.
func TestHostileServersAreShown(t *testing.T) {
	var commands [][]string
	for _, c := range hostileCommands() {
		commands = append(commands, c.args)
	}
	for _, args := range []string{
		"preview -p POLICY -o wide", "preview -p POLICY -v=8",
		"preview -p POLICY --report=github --metrics=OUT/metrics --save=OUT/saved.plan",
		"plan show OUT/saved.plan", "apply-existing --plan=OUT/saved.plan --yes --journal=OUT/journal",
		"history -A", "apply-existing --resume=OUT/journal --yes", "undo OUT/journal --yes",
		"__complete preview -n x",
	} {
		commands = append(commands, strings.Fields(args))
	}
	text := hostileLine + hostile.All() + hostileLine
	for place, answer := range hostileAnswers(text) {
		s := &apiServer{hostile: func(w http.ResponseWriter, r *http.Request) bool {
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
