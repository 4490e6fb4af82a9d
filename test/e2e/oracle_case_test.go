package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// The operations of a case; on UPDATE its objects exist.
const (
	operationUpdate = "UPDATE"
	operationCreate = "CREATE"
)

// placeholder stands in the text of a case for the namespace that it gets.
const placeholder = "NAMESPACE"

const policyGroup = "admissionregistration.k8s.io"

// oracleCase is policies, objects, and what else there must be in the cluster.
type oracleCase struct {
	oracleSettings
	name                           string
	file                           string            // the case's own
	recorded                       map[string]string // the answers in it, by section
	policyText, worldText, objText string

	namespace  string
	namespaces []string                     // those that the policies are confined to
	policies   []*unstructured.Unstructured // with bindings
	world      []*unstructured.Unstructured
	objects    []*unstructured.Unstructured

	err       error
	existing  []*unstructured.Unstructured // the world as the server has it
	live      []*unstructured.Unstructured // the objects as the server has, or would have, them
	predicted prediction
	ours      []answer // what was predicted, with the server's defaults
	refusals  []string // of policies, by the server
}

// oracleSettings are the section settings.yaml of a case; all may be left out.
type oracleSettings struct {
	Operation string   `json:"operation"`
	User      string   `json:"user"` // sends the objects; the administrator otherwise
	Groups    []string `json:"groups"`
	// Differs says why kubectl-mutate does not answer as the server does, and Apart
	// why it does not answer the same when it is asked about all cases at once.
	Differs string `json:"differs"`
	Apart   string `json:"apart"`
}

// ownOracleCases reads testdata/oracle.
func ownOracleCases(t *testing.T) []*oracleCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "oracle", "*.txtar"))
	check(t, err)
	var cases []*oracleCase
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		check(t, err)
		c := &oracleCase{name: strings.TrimSuffix(filepath.Base(file), ".txtar"), file: file, recorded: map[string]string{}}
		c.Operation = operationUpdate
		for _, f := range archive.Files {
			switch f.Name {
			case "settings.yaml":
				err = yaml.UnmarshalStrict(f.Data, &c.oracleSettings)
			case "policy.yaml":
				c.policyText = string(f.Data)
			case "world.yaml":
				c.worldText = string(f.Data)
			case "objects.yaml":
				c.objText = string(f.Data)
			case recordSection, differsSection:
				c.recorded[f.Name] = string(f.Data)
			default:
				err = errors.New("what is it for?")
			}
			if err != nil {
				t.Fatalf("%s: %s: %v", file, f.Name, err)
			}
		}
		cases = append(cases, c)
	}
	return cases
}

// What the server answers, and what kubectl-mutate does where that differs.
const (
	recordSection  = "answer.txt"
	differsSection = "differs.txt"
)

// record writes an answer into the case.
func (c *oracleCase) record(section, text string) error {
	archive, err := txtar.ParseFile(c.file)
	if err != nil {
		return err
	}
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == section })
	archive.Files = append(archive.Files, txtar.File{Name: section, Data: []byte(text)})
	return os.WriteFile(c.file, txtar.Format(archive), 0o644)
}

// place gives a case its namespace and reads its objects.
func (c *oracleCase) place(namespace string) error {
	c.namespace, c.User = namespace, strings.ReplaceAll(c.User, placeholder, namespace)
	for _, part := range []struct {
		text string
		into *[]*unstructured.Unstructured
	}{{c.policyText, &c.policies}, {c.worldText, &c.world}, {c.objText, &c.objects}} {
		objects, err := readManifests(strings.ReplaceAll(part.text, placeholder, namespace))
		if err != nil {
			return err
		}
		*part.into = append(*part.into, objects...)
	}
	if !slices.ContainsFunc(c.world, func(u *unstructured.Unstructured) bool { return isNamespace(u) && u.GetName() == namespace }) {
		own := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		own.SetName(namespace)
		c.world = append([]*unstructured.Unstructured{own}, c.world...)
	}
	for _, u := range slices.Concat(c.world, c.objects) {
		if isNamespace(u) {
			c.namespaces = append(c.namespaces, u.GetName())
		}
	}
	for _, u := range c.policies {
		c.confine(u)
	}
	return nil
}

// confine keeps policies from meeting those of other cases: it puts the
// namespace before their names, and has them match in the case's own namespaces.
// Of objects without a namespace the case itself has to see to it.
func (c *oracleCase) confine(u *unstructured.Unstructured) {
	u.SetName(c.namespace + "." + u.GetName())
	spec, _ := u.Object["spec"].(map[string]any)
	if name, ok := spec["policyName"].(string); ok {
		spec["policyName"] = c.namespace + "." + name
		return
	}
	constraints, ok := spec["matchConstraints"].(map[string]any)
	if !ok {
		return // the server has something to say about it
	}
	selector, _ := constraints["namespaceSelector"].(map[string]any)
	if selector == nil {
		selector = map[string]any{}
		constraints["namespaceSelector"] = selector
	}
	var names []any
	for _, n := range c.namespaces {
		names = append(names, n)
	}
	expressions, _ := selector["matchExpressions"].([]any)
	selector["matchExpressions"] = append(expressions, map[string]any{
		"key": "kubernetes.io/metadata.name", "operator": "In", "values": names,
	})
}

func isNamespace(u *unstructured.Unstructured) bool {
	return u.GetKind() == "Namespace" && u.GetAPIVersion() == "v1"
}

// titleOf returns the kind, namespace and name of an object.
func titleOf(u *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName())
}

func readManifests(text string) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var objects []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(u)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(u.Object) > 0 {
			objects = append(objects, u)
		}
	}
}

// sharedOracleCases reads the cases of this language that were measured with
// another engine.
func sharedOracleCases(t *testing.T) []*oracleCase {
	t.Helper()
	typed := os.Getenv("CONFORMANCE_DIR")
	dir := cmp.Or(typed, filepath.Join("..", "..", "..", "shared", "conformance"))
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "case.json"))
	check(t, err)
	switch {
	case len(files) == 0 && typed != "":
		t.Fatalf("CONFORMANCE_DIR=%s holds no case", dir)
	case len(files) == 0:
		t.Logf("THE SHARED CASES ARE NOT ASKED ABOUT: there are none in %s, and CONFORMANCE_DIR is not set", dir)
	}
	var cases []*oracleCase
	for _, file := range files {
		var about struct {
			ID, Operation string
			Dialects      []string
		}
		text, err := os.ReadFile(file)
		check(t, err)
		check(t, json.Unmarshal(text, &about))
		if !slices.Equal(about.Dialects, []string{"admissionpolicy"}) {
			continue
		}
		c := &oracleCase{name: about.ID}
		c.Operation = about.Operation
		check(t, c.readShared(filepath.Dir(file)))
		cases = append(cases, c)
	}
	return cases
}

// readShared reads a case of the shared corpus, whose namespaces are any that
// its author thought of.
func (c *oracleCase) readShared(dir string) error {
	policies, err := os.ReadFile(filepath.Join(dir, "policy.yaml"))
	if err != nil {
		return err
	}
	c.policyText = string(policies)
	text, err := os.ReadFile(filepath.Join(dir, "objects.yaml"))
	if err != nil {
		return err
	}
	objects, err := readManifests(string(text))
	if err != nil {
		return err
	}
	for _, u := range objects {
		if isNamespace(u) {
			u.SetName(placeholder + "-" + u.GetName())
		} else {
			u.SetNamespace(sharedNamespace(u.GetNamespace()))
		}
		if c.objText, err = appendManifest(c.objText, u); err != nil {
			return err
		}
	}
	return c.readSharedValues(filepath.Join(dir, "values.yaml"))
}

// readSharedValues makes Namespaces with the labels that values describe.
func (c *oracleCase) readSharedValues(file string) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var values struct {
		NamespaceSelector []struct {
			Name   string
			Labels map[string]string
		} `json:"namespaceSelector"`
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return err
	}
	for _, n := range values.NamespaceSelector {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		u.SetName(sharedNamespace(n.Name))
		u.SetLabels(n.Labels)
		if c.worldText, err = appendManifest(c.worldText, u); err != nil {
			return err
		}
	}
	return nil
}

func sharedNamespace(name string) string {
	if name == "" || name == "default" {
		return placeholder
	}
	return placeholder + "-" + name
}

func appendManifest(text string, u *unstructured.Unstructured) (string, error) {
	out, err := yaml.Marshal(u.Object)
	return text + "---\n" + string(out), err
}
