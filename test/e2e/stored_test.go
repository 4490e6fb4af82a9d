package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// setByServer are fields that a server sets after admission, or on its own account.
var setByServer = regexp.MustCompile(`^(metadata\.(uid|resourceVersion|generation|creationTimestamp|managedFields|namespace|finalizers|selfLink|generateName)` +
	`|status|Service spec\.(clusterIP|clusterIPs|ipFamilies|ipFamilyPolicy|ports\[\d\]\.nodePort)` +
	`|Node spec\.taints\[1|PersistentVolume metadata\.finalizers|Namespace spec` +
	`|Pod spec\.(priority|preemptionPolicy|tolerations\[[12])` +
	`|Job (spec\.selector|spec\.template\.metadata\.labels|metadata\.labels)` +
	`|(Deployment|StatefulSet|DaemonSet) metadata\.annotations` +
	`|CSIDriver spec\.preventPodSchedulingIfMissing|Lease spec\.(preferredHolder|strategy)` + // of features that are off
	`|CertificateSigningRequest spec\.(username|uid|groups|extra))\b`)

// TestStored creates an object of each built-in kind, with every zero value, empty list and empty map that the server
// takes, and compares what it stores with what openapi.AsStored makes of the object.
func TestStored(t *testing.T) {
	config := restConfig(t)
	config.WarningHandler = rest.NoWarnings{}
	admin, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := newNamespace(t)
	text, err := os.ReadFile("testdata/stored.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known, err := snapshot.Load(nil, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	total, kinds := 0, map[string]bool{}
	var all unstructured.UnstructuredList
	if err := yaml.Unmarshal([]byte(strings.NewReplacer("namespace: NS", "namespace: "+namespace, "request: CSR", "request: "+signingRequest(t)).Replace(string(text))), &all); err != nil {
		t.Fatal(err)
	}
	for _, u := range all.Items {
		mapping, err := known.Mapper().RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		var at dynamic.ResourceInterface = admin.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			u.SetNamespace(namespace)
			at = admin.Resource(mapping.Resource).Namespace(namespace)
		}
		t.Run(u.GetKind()+" "+u.GetName(), func(t *testing.T) {
			sent := create(t, at, &u)
			t.Cleanup(func() { _ = at.Delete(context.Background(), u.GetName(), metav1.DeleteOptions{}) })
			got, err := at.Get(t.Context(), u.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			c := &storedComparison{T: t, kind: u.GetKind()}
			c.compare("", openapi.AsStored(sent).Object, got.Object)
			total, kinds[u.GroupVersionKind().String()] = total+c.fields, true
		})
	}
	t.Logf("%d kinds, %d fields", len(kinds), total)
	if len(kinds) < 50 || total < 1000 {
		t.Errorf("only %d kinds and %d fields were compared", len(kinds), total)
	}
}

// create creates an object with all zero values that the server takes, and returns what was sent.
func create(t *testing.T, at dynamic.ResourceInterface, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	typed, err := scheme.Scheme.New(u.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{"spec.overhead": true} // by another plugin than validation
	for {
		z := zeros{refused: refused}
		sent := u.DeepCopy()
		z.fill("", sent.Object, reflect.TypeOf(typed).Elem())
		_, err := at.Create(t.Context(), sent, metav1.CreateOptions{})
		if err == nil {
			return sent
		}
		var status *apierrors.StatusError
		known := len(refused)
		if errors.As(err, &status) && status.ErrStatus.Details != nil {
			for _, cause := range status.ErrStatus.Details.Causes {
				for _, added := range z.added {
					if strings.HasPrefix(added, cause.Field) || strings.HasPrefix(cause.Field, added) {
						refused[added] = true
					}
				}
			}
		}
		if len(refused) == known && !refused["*"] { // some are refused in the name of another field
			refused["*"] = true
		} else if len(refused) == known {
			t.Fatalf("%v\n%v", err, z.added)
		}
	}
}

// zeros adds the zero values of a Go type to an object, but for what is refused.
type zeros struct {
	refused map[string]bool // by path; * for those of pointers
	added   []string
}

func (z *zeros) fill(path string, object map[string]any, of reflect.Type) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || path == "" && name == "status" ||
			strings.HasSuffix(path, "metadata") && !slices.Contains([]string{"labels", "annotations", "finalizers", "ownerReferences"}, name):
			continue
		case name == "":
			z.fill(path, object, f.Type)
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		if v, has := object[name]; has {
			z.below(at, v, f.Type)
			continue
		}
		if v, ok := zeroOf(f.Type); ok && !z.refused[at] && (f.Type.Kind() != reflect.Pointer || !z.refused["*"]) {
			z.added = append(z.added, at)
			object[name] = v
			z.below(at, v, f.Type)
		}
	}
}

func (z *zeros) below(path string, v any, of reflect.Type) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if isLeaf(of) {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if of.Kind() == reflect.Struct {
			z.fill(path, v, of)
		}
	case []any:
		for i, item := range v {
			z.below(fmt.Sprintf("%s[%d]", path, i), item, of.Elem())
		}
	}
}

func isLeaf(of reflect.Type) bool {
	switch reflect.Zero(of).Interface().(type) {
	case resource.Quantity, intstr.IntOrString, metav1.Time, metav1.MicroTime, metav1.Duration, runtime.RawExtension, []byte:
		return true
	}
	return false
}

func zeroOf(of reflect.Type) (any, bool) {
	if of.Kind() == reflect.Pointer {
		if of = of.Elem(); of.Kind() == reflect.Struct {
			return nil, false
		}
	}
	switch reflect.Zero(of).Interface().(type) {
	case metav1.Time, metav1.MicroTime:
		return nil, true
	}
	switch {
	case of == reflect.TypeFor[[]byte]():
		return "", true
	case isLeaf(of):
		return nil, false
	}
	switch of.Kind() {
	case reflect.String:
		return "", true
	case reflect.Bool:
		return false, true
	case reflect.Int32, reflect.Int64:
		return int64(0), true
	case reflect.Slice:
		return []any{}, true
	case reflect.Map, reflect.Struct:
		return map[string]any{}, true
	}
	return nil, false
}

// storedComparison compares what is stored with what was expected.
type storedComparison struct {
	*testing.T
	kind   string
	fields int
}

func (c *storedComparison) compare(path string, want, got any) {
	if setByServer.MatchString(path) || setByServer.MatchString(c.kind+" "+path) {
		return
	}
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			for name, v := range w {
				c.compare(strings.TrimPrefix(path+"."+name, "."), v, g[name])
			}
			for name, v := range g {
				if _, has := w[name]; !has {
					c.compare(strings.TrimPrefix(path+"."+name, "."), nil, v)
				}
			}
			return
		}
	case []any:
		if g, ok := got.([]any); ok {
			for i := range max(len(w), len(g)) {
				var x, y any
				if i < len(w) {
					x = w[i]
				}
				if i < len(g) {
					y = g[i]
				}
				c.compare(fmt.Sprintf("%s[%d]", path, i), x, y)
			}
			return
		}
		if len(w) == 0 && got == nil {
			return
		}
	}
	c.fields++
	if want != nil || got != nil {
		if g, isMap := got.(map[string]any); want == nil && isMap && len(g) == 0 && path == "spec" {
			return
		}
		if !reflect.DeepEqual(want, got) {
			c.Errorf("%s: %#v is stored, and not %#v", path, got, want)
		}
	}
}

// signingRequest is a certificate signing request, as base64.
func signingRequest(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}
