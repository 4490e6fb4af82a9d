package plugin_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
)

// documents are objects in a file.
func documents(objects ...fields) string {
	out := make([]string, len(objects))
	for i, o := range objects {
		text, _ := json.Marshal(o) // plain values
		out[i] = string(text)
	}
	return strings.Join(out, "\n---\n")
}

// listedWorld is secretWorld with a Secret that has more than texts, and lists of what a mutator may look for.
func listedWorld() string {
	encoded := base64.StdEncoding.EncodeToString([]byte(secretText))
	items := []any{fields{"name": "a", "value": secretText, "image": "zqx7wv9.example/kp3jm5:ty8"}, fields{"name": secretText, "image": ":" + "zQx7Wv9Kp3Jm5"}}
	return secretWorld() + "\n---\n" + documents(fields{
		"apiVersion": "v1", "kind": "Secret", "metadata": fields{"name": "d", "namespace": "default"}, "data": fields{"text": encoded, "tag": ":" + "zQx7Wv9Kp3Jm5"},
		"stringData": fields{"list": []any{secretText, secretNumber}, "items": items, "nested": fields{"text": secretText}},
	})
}

// mutators draws mutators of Secrets, and of the ConfigMap in which a policy in CEL has put what it makes of one.
func mutators(random *rand.Rand) string {
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	location := func() string {
		return pick("stringData.text", "stringData.image", "stringData.none", "stringData.text.deep", "stringData.list", "stringData.list[name: a].value", "stringData.items",
			"stringData.items[name: a].value", "stringData.items[name: *].image", "stringData.items[value: z].image", "stringData.nested.text", "stringData.nested", "data.text", "data.tag",
			"data.made", "data.made.deep", "data.made[name: a].x", "data.image", "data.tagged", "stringData", `metadata.annotations."kubectl.kubernetes.io/last-applied-configuration"`, "kind")
	}
	value := func() any {
		return []any{"x", int64(5), true, fields{"name": "a", "value": "y"}, []any{"x"}, fields{"text": "z"}, "other.example/y:z"}[random.IntN(7)]
	}
	var out []fields
	for range 1 + random.IntN(3) {
		at := location()
		kind := pick("Assign", "AssignMetadata", "ModifySet", "AssignImage")
		parameters, spec := fields{}, fields{"location": at, "applyTo": []any{fields{"groups": []any{""}, "versions": []any{"v1"}, "kinds": []any{"Secret", "ConfigMap"}}}}
		assign := func() fields {
			switch random.IntN(4) {
			case 0:
				return fields{"fromMetadata": fields{"field": pick("name", "namespace")}}
			case 1:
				return fields{"externalData": fields{"provider": "p", "dataSource": pick("ValueAtLocation", "Username"), "failurePolicy": "UseDefault", "default": "x"}}
			}
			return fields{"value": value()}
		}
		switch kind {
		case "Assign":
			parameters["assign"] = assign()
		case "AssignMetadata":
			delete(spec, "applyTo")
			spec["location"] = pick(`metadata.annotations."kubectl.kubernetes.io/last-applied-configuration"`, "metadata.labels.made", "metadata.annotations.made", "metadata.labels.none")
			if parameters["assign"] = assign(); parameters["assign"].(fields)["value"] != nil {
				parameters["assign"] = fields{"value": "x"}
			}
		case "ModifySet":
			parameters["operation"], parameters["values"] = pick("merge", "prune"), fields{"fromList": []any{value(), value()}}
		case "AssignImage":
			maps.Copy(parameters, []fields{{"assignDomain": "other.example"}, {"assignPath": "x/y"}, {"assignTag": ":v2"}, {"assignTag": "@sha256:" + strings.Repeat("a", 64)}, {"assignDomain": "other.example", "assignTag": ":v3"}}[random.IntN(5)])
		}
		if random.IntN(3) == 0 && kind != "AssignMetadata" {
			parameters["pathTests"] = []any{fields{"subPath": at[:min(len(at), max(strings.Index(at, "."), 4))], "condition": pick("MustExist", "MustNotExist")}}
		}
		if random.IntN(4) == 0 {
			spec["match"] = []fields{{"name": "s"}, {"name": "c*"}, {"labelSelector": fields{"matchLabels": fields{"made": "x"}}}, {"scope": "Namespaced"}, {"source": "Original"}}[random.IntN(5)]
		}
		spec["parameters"] = parameters
		out = append(out, fields{"apiVersion": "mutations.gatekeeper.sh/v1", "kind": kind, "metadata": fields{"name": fmt.Sprint("m", len(out))}, "spec": spec})
	}
	made := pick("variables.s.text", "variables.s.number", "variables.s.json", "string(variables.s.text).upperAscii()", `variables.s.text.split("").join("-")`)
	policy := celPolicy(false, "k", fields{"variables": []string{made}, "mutations": []any{fields{"patchType": "JSONPatch", "jsonPatch": fields{"expression": `[
		JSONPatch{op: "add", path: "/metadata/labels/made", value: string(variables.v)}, JSONPatch{op: "add", path: "/metadata/annotations", value: {"made": string(variables.v)}},
		JSONPatch{op: "add", path: "/data/made", value: string(variables.v)}, JSONPatch{op: "add", path: "/data/image", value: string(variables.s.image)},
		JSONPatch{op: "add", path: "/data/tagged", value: ":" + string(variables.s.text).substring(0, 13)}]`}}}})
	return policy + "\n---\n" + documents(out...)
}

// globalEntries are GlobalContextEntries that have the Secret, whole or a part of it that is made in JMESPath.
func globalEntries() string {
	entry := func(name string, spec fields, projections ...string) fields {
		var all []any
		for i, jmesPath := range projections {
			all = append(all, fields{"name": fmt.Sprint("p", i), "jmesPath": jmesPath})
		}
		if spec["projections"] = all; all == nil {
			delete(spec, "projections")
		}
		return fields{"apiVersion": "kyverno.io/v2", "kind": "GlobalContextEntry", "metadata": fields{"name": name}, "spec": spec}
	}
	list := fields{"version": "v1", "resource": "secrets", "namespace": "default"}
	call := func(path string) fields { return fields{"urlPath": path, "refreshInterval": "1h"} }
	return documents(
		entry("list", fields{"kubernetesResource": list}),
		entry("projected", fields{"kubernetesResource": list}, "[?metadata.name=='s'].stringData | [0]", "[].stringData.text", "[?metadata.name=='s'] | [0].{stringData: stringData}"),
		entry("call", fields{"apiCall": call(secretPath)}),
		entry("all", fields{"apiCall": call("/api/v1/namespaces/default/secrets")}),
		entry("called", fields{"apiCall": call(secretPath)}, "stringData", "{stringData: merge(stringData, {more: to_upper(stringData.text)})}", "stringData.{text: text, number: number, image: image}"),
		entry("broken", fields{"apiCall": call(secretPath)}, "parse_json(stringData.text)", "to_number(stringData.text)", "time_parse(stringData.text, stringData.text)"),
	)
}

// globalSources are contexts by which rules see the Secret of an entry, and expressions of CEL for what is in it.
func globalSources() (kyverno [][]any, cel []string) {
	reference := func(name, reference, jmesPath string) fields {
		of := fields{"name": reference}
		if jmesPath != "" {
			of["jmesPath"] = jmesPath
		}
		return fields{"name": name, "globalReference": of}
	}
	s := fields{"name": "s", "variable": fields{"jmesPath": "sec.stringData"}}
	kyverno = [][]any{
		{reference("sec", "list", "[?metadata.name=='s'] | [0]"), s},
		{reference("s", "projected.p0", ""), fields{"name": "sec", "variable": fields{"jmesPath": "{stringData: s}"}}},
		{reference("sec", "projected.p2", ""), s},
		{reference("sec", "call", ""), s},
		{reference("sec", "all", "items[?metadata.name=='s'] | [0]"), s},
		{reference("s", "called.p0", "merge(@, {x: text})"), fields{"name": "sec", "variable": fields{"jmesPath": "{stringData: s}"}}},
		{reference("sec", "called.p1", ""), s},
		{reference("s", "called.p2", ""), fields{"name": "sec", "variable": fields{"jmesPath": "{stringData: s}"}}},
		{reference("t", "projected.p1", "[0]"), reference("sec", "call", "{stringData: {text: to_string(stringData.text), number: stringData.number}}"), s},
		{reference("sec", "broken.p0", ""), s},
		{reference("sec", "broken.p1", ""), s},
		{reference("sec", "broken.p2", ""), s},
		{reference("sec", "call", "parse_yaml(stringData.text)"), s},
	}
	return kyverno, []string{
		`globalContext.Get("list").filter(x, x.metadata.name == "s")[0].stringData`, `globalContext.Get("call").stringData`, `globalContext.Get("called").stringData`,
		`globalContext.Get("all").items.filter(x, x.metadata.name == "s")[0].stringData`, `globalContext.Get("list").map(x, x.stringData).filter(x, "text" in x)[0]`,
	}
}

// echo is a service that answers with what it is sent, in the way that the last part of the path says.
func echo(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		sent := struct{ StringData map[string]any }{}
		_ = json.Unmarshal(body, &sent) // what is no JSON has none
		way, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		told := fmt.Sprint(r.URL.Query().Get("v"), r.Header.Get("X-Value"), sent.StringData["text"])
		raw := func(format string) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(connection, format, told)
			_ = connection.Close()
		}
		switch way {
		case "escaped":
			fmt.Fprintf(w, `{"stringData": {"text": %q, "number": "1", "image": %q}}`, url.QueryEscape(told), url.PathEscape(told))
		case "base64":
			fmt.Fprintf(w, `{"stringData": {"text": %q, "number": "1"}}`, base64.StdEncoding.EncodeToString([]byte(told)))
		case "broken":
			fmt.Fprint(w, told)
		case "text":
			fmt.Fprintf(w, "%q", told)
		case "refused":
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, "there is no ", told)
		case "status":
			raw("HTTP/1.1 404 no %s\r\nContent-Length: 0\r\n\r\n")
		case "malformed":
			raw("HTTP/1.1 %s\r\n\r\n")
		case "header":
			raw("HTTP/1.1 200 OK\r\n%s\r\n\r\n")
		case "redirected":
			w.Header().Set("Location", "http://127.0.0.1:9/"+url.PathEscape(told))
			w.WriteHeader(http.StatusFound)
		case "elsewhere":
			w.Header().Set("Location", "http://"+plainLetters(told)+".invalid/")
			w.WriteHeader(http.StatusFound)
		default:
			text, _ := json.Marshal(fields{"stringData": sent.StringData, "told": told, "path": r.URL.Path}) // plain values
			_, _ = w.Write(text)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// echoes are the ways of echo.
var echoes = []string{"json", "escaped", "base64", "broken", "text", "refused", "status", "malformed", "header", "redirected", "elsewhere"}

// serviceSources are contexts by which rules send the Secret to a service and see its answer, and expressions of CEL for that.
func serviceSources(service string) (kyverno [][]any, cel []string) {
	secret := fields{"name": "read", "apiCall": fields{"urlPath": secretPath}}
	s := fields{"name": "s", "variable": fields{"jmesPath": "sec.stringData || {text: sec, number: sec, json: sec, image: sec}"}}
	for _, way := range echoes {
		to := service + "/" + way
		call := func(of fields, url, header string) []any {
			of["service"] = fields{"url": url}
			if header != "" {
				of["service"].(fields)["headers"] = []any{fields{"key": "X-Value", "value": header}}
			}
			return []any{secret, fields{"name": "sec", "apiCall": of}, s}
		}
		post := func() fields {
			return fields{"method": "POST", "data": []any{fields{"key": "stringData", "value": "{{ read.stringData }}"}}}
		}
		kyverno = append(kyverno,
			call(post(), to, ""), call(post(), to, "{{ base64_encode(read.stringData.text) }}"),
			call(fields{"method": "GET"}, to+"?v={{ read.stringData.number }}", "{{ reverse(read.stringData.number) }}"),
			call(fields{"method": "GET"}, to+"/{{ read.stringData.text }}?v={{ read.stringData.version }}", ""))
		read := `resource.Get("v1", "secrets", "default", "s")`
		for _, get := range []string{
			fmt.Sprintf(`http.Post(%q, %s)`, to, read), fmt.Sprintf(`http.Post(%q, %s, {"X-Value": string(%s.stringData.text)})`, to, read, read),
			fmt.Sprintf(`http.Get(%q + string(%s.stringData.number))`, to+"?v=", read), fmt.Sprintf(`http.Get(%q, {"X-Value": string(%s.stringData.number)})`, to, read),
		} {
			cel = append(cel, get+".stringData", get+".?stringData.orValue({})")
			if way == "text" {
				cel[len(cel)-1] = `{"text": ` + get + `.body, "number": ` + get + `.body}`
			}
		}
	}
	return kyverno, cel
}

// secretSources draw policies of a kind: mutators of Gatekeeper, and a number of policies that see the Secret by GlobalContextEntries, or
// by services that answer with what they are sent.
func secretSources(t *testing.T, policies int) map[string]func(*rand.Rand) string {
	t.Helper()
	call := nestedCELCalls(t, newCELTrial(t, true), rand.New(rand.NewPCG(*secretSeed, 13))) //nolint:gosec // the same each time
	drawn := func(random *rand.Rand, kyverno [][]any, cel []string) string {
		var out []string
		for n := range policies {
			all := append(kyvernoPlaces(secretCalls[random.IntN(len(secretCalls))]), kyvernoValues(n, secretCalls[random.IntN(len(secretCalls))])...)
			out = append(out, kyvernoPolicyFrom(fmt.Sprint("k", n), []map[string]any{all[random.IntN(len(all))]}, kyverno[random.IntN(len(kyverno))]...))
			places := celPlaces(n, call())
			out = append(out, celPolicyFrom(true, fmt.Sprint("p", n), places[random.IntN(len(places))], cel[random.IntN(len(cel))]))
		}
		return strings.Join(out, "\n---\n")
	}
	entryRules, entryCEL := globalSources()
	serviceRules, serviceCEL := serviceSources(echo(t))
	return map[string]func(*rand.Rand) string{
		"mutators": mutators,
		"entries": func(random *rand.Rand) string {
			return globalEntries() + "\n---\n" + drawn(random, entryRules, entryCEL)
		},
		"services": func(random *rand.Rand) string { return drawn(random, serviceRules, serviceCEL) },
	}
}

// TestSecretsOfSources is TestSecretsInNestedCalls for mutators of Gatekeeper, GlobalContextEntries, and services that answer with what
// they are sent.
func TestSecretsOfSources(t *testing.T) {
	tier.NotShort(t)
	sets := 21 // each command with one of them
	if *everyMutation {
		sets = 600
	}
	dir := t.TempDir()
	world := writeSecretsFile(t, dir, "world.yaml", listedWorld())
	for kind, draw := range secretSources(t, 6) {
		t.Run(kind, func(t *testing.T) {
			random := rand.New(rand.NewPCG(*secretSeed, 11)) //nolint:gosec // the same each time
			made := 0
			for i := range sets {
				policy := writeSecretsFile(t, dir, "policy.json", draw(random))
				if checkNested(t, i, policy, world, "--allow-http") {
					made++
				}
			}
			if 4*made < 3*sets {
				t.Errorf("%d of %d sets make something of the Secret", made, sets)
			}
		})
	}
}
