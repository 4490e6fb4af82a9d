package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

const watchConfigMaps = "GET /api/v1/configmaps?allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=300&watch=true"

// watchEvent is a line of a watch.
func watchEvent(kind, name, version, data string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"shop","uid":"uid-%s","resourceVersion":%q,"labels":{"a":"b"}},"data":{"v":%q}}}`+"\n",
		kind, name, name, version, data)
}

// refused is an error answer with a message.
func refused(code int, reason string) answer {
	return answer{code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not this time","reason":%q,"code":%d}`, reason, code)}
}

// watched returns the ConfigMaps of a server that answers a watch from version 7.
func watched(t *testing.T, a answer) (*cluster.Watched, *fakeServer) {
	t.Helper()
	s := newServer(t, map[string]answer{watchConfigMaps: a})
	all, unknown, err := s.client(t, cluster.Options{}).Watches(t.Context(), engine.Scope{ClusterScoped: true},
		[]engine.Selection{{Kind: "ConfigMap", Version: "v1"}, {Kind: "Secret", Version: "v1"}})
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	if len(unknown) != 1 || unknown[0].Error() != "cannot read changes of secrets: the server does not let them be watched" {
		t.Errorf("not watched: %v", unknown)
	}
	return all[0], s
}

func TestWatch(t *testing.T) {
	gone := `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version: 7 (9)"}}` + "\n"
	bookmark := `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"12","creationTimestamp":null}}}` + "\n"
	for name, c := range map[string]struct {
		answer answer
		closed bool   // the server does not take the watch
		want   string // the events
		err    string
		gone   bool
	}{
		"changes": {
			answer: answer{body: watchEvent("ADDED", "a", "8", "x") + "\n" + watchEvent("MODIFIED", "a", "9", "y") + bookmark + watchEvent("DELETED", "a", "13", "y")},
			want:   "ADDED a 8, MODIFIED a 9, BOOKMARK  12, DELETED a 13",
		},
		"an event that is cut":       {answer: answer{body: watchEvent("ADDED", "a", "8", "x") + watchEvent("ADDED", "b", "9", "x")[:50]}, want: "ADDED a 8"},
		"an expired version":         {answer: refused(http.StatusGone, "Expired"), closed: true, err: "not this time", gone: true},
		"one that expires meanwhile": {answer: answer{body: watchEvent("ADDED", "a", "8", "x") + gone}, want: "ADDED a 8", err: "too old resource version", gone: true},
		"no permission":              {answer: refused(http.StatusForbidden, "Forbidden"), closed: true, err: "not this time"},
		"no JSON":                    {answer: answer{body: "<html>\n"}, err: "the answer is no event of a watch: invalid character '<'"},
		"an unknown type":            {answer: answer{body: watchEvent("RENAMED", "a", "8", "x")}, err: `the answer is no event of a watch: its type is "RENAMED"`},
		"an error of another type":   {answer: answer{body: `{"type":"ERROR","object":{"code":"x","message":[1]}}` + "\n"}, err: "the answer is no event of a watch: "},
		"an object that is a list":   {answer: answer{body: `{"type":"ADDED","object":[{}]}` + "\n"}, err: "the answer is no event of a watch: "},
		"much in all": {
			answer: answer{body: strings.Repeat(watchEvent("ADDED", "a", "8", strings.Repeat("[", 1<<20)), 40)},
			want:   strings.Repeat("ADDED a 8, ", 39) + "ADDED a 8",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := watched(t, c.answer)
			var got []string
			opened := 0
			err := w.Watch(t.Context(), "7", func() { opened++ }, func(e cluster.WatchEvent) error {
				got = append(got, fmt.Sprintf("%s %s %s", e.Type, e.Object.GetName(), e.Object.GetResourceVersion()))
				return nil
			})
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) || cluster.Expired(err) != c.gone {
				t.Errorf("ended with %v, want %q", err, c.err)
			}
			if (opened == 0) != c.closed || opened > 1 {
				t.Errorf("opened %d times", opened)
			}
			if n := len(s.sent()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestWatchEndsWithItsReader(t *testing.T) {
	w, _ := watched(t, answer{body: watchEvent("ADDED", "a", "8", "x") + watchEvent("ADDED", "b", "9", "x")})
	enough := errors.New("enough")
	n := 0
	err := w.Watch(t.Context(), "7", func() {}, func(cluster.WatchEvent) error { n++; return enough })
	if !errors.Is(err, enough) || n != 1 {
		t.Errorf("%d events, %v", n, err)
	}
}

// What is watched has a version from which, and objects whatever their labels.
func TestWatchedList(t *testing.T) {
	s := newServer(t, map[string]answer{
		"GET /api/v1/namespaces/shop/configmaps?fieldSelector=metadata.name%3Da&limit=500": {body: `{"kind":"ConfigMapList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"3"}}]}`},
		"GET /api/v1/configmaps?limit=500":                                                 status(http.StatusForbidden, "Forbidden", ""),
	})
	client := s.client(t, cluster.Options{})
	one := engine.Selection{Kind: "ConfigMap", Version: "v1", Namespace: "shop", Name: "a"}
	all, _, err := client.Watches(t.Context(), engine.Scope{ClusterScoped: true}, []engine.Selection{one})
	if err != nil || len(all) != 1 || all[0].String() != "configmaps in namespace shop (metadata.name=a)" || all[0].In([]string{"bank"}) != nil {
		t.Fatalf("%v, %v", all, err)
	}
	var got []string
	version, err := all[0].List(t.Context(), func(u *unstructured.Unstructured) error {
		got = append(got, fmt.Sprintf("%s@%s %t", engine.KeyOf(u), u.GetResourceVersion(), all[0].Wants(u)))
		return nil
	})
	if diff := cmp.Diff([]string{"ConfigMap shop/a@3 true"}, got); diff != "" || version != "7" || err != nil {
		t.Errorf("version %q, %v\n%s", version, err, diff)
	}
	all, _, err = client.Watches(t.Context(), engine.Scope{ClusterScoped: true}, []engine.Selection{{Kind: "ConfigMap", Version: "v1"}})
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	if _, err := all[0].List(t.Context(), nil); !apierrors.IsForbidden(err) || fmt.Sprint(all[0].In([]string{"bank", "shop"})) != "[configmaps in namespace bank configmaps in namespace shop]" {
		t.Errorf("%s: %v", all[0], err)
	}
	policies, err := client.PolicyWatches(t.Context(), func(gk schema.GroupKind) engine.Role {
		if gk.Kind == "ClusterPolicy" {
			return engine.Policy
		}
		return engine.Foreign
	})
	if err != nil || len(policies) != 1 || policies[0].String() != "clusterpolicies.kyverno.io" {
		t.Errorf("policies: %v, %v", policies, err)
	}
}

// Two states that differ in nothing but what a server notes have the same digest.
func TestDigest(t *testing.T) {
	digest := func(text string) uint64 {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return cluster.Digest(u)
	}
	is := digest(`{"metadata":{"name":"a","uid":"u","resourceVersion":"1","labels":{"a":"b"}},"spec":{"x":[1,{"status":2}]}}`)
	for text, same := range map[string]bool{
		`{"apiVersion":"v1","kind":"X","metadata":{"name":"a","uid":"u","resourceVersion":"2","generation":3,"labels":{"a":"b"},"managedFields":[{"a":1}]},"spec":{"x":[1,{"status":2}]},"status":{"y":1}}`: true,
		`{"metadata":{"name":"a","uid":"u","resourceVersion":"1","labels":{"a":"c"}},"spec":{"x":[1,{"status":2}]}}`:                                                                                        false,
		`{"metadata":{"name":"a","uid":"u","resourceVersion":"1","labels":{"a":"b"}},"spec":{"x":[1,{"status":3}]}}`:                                                                                        false,
		`{"metadata":{"name":"a","uid":"u","resourceVersion":"1","labels":{"a":"b"},"deletionTimestamp":"now"},"spec":{"x":[1,{"status":2}]}}`:                                                              false,
	} {
		if (digest(text) == is) != same {
			t.Errorf("%s: same %t", text, !same)
		}
	}
}
