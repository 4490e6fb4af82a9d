package e2e

import (
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

	"github.com/kubectl-mutate/kubectl-mutate/test/corpus"
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

// corpusOracleCases reads the cases of this language that were measured with
// another engine.
func corpusOracleCases(t *testing.T) []*oracleCase {
	t.Helper()
	all, err := corpus.Cases()
	check(t, err)
	var cases []*oracleCase
	for _, about := range all {
		if !slices.Equal(about.Dialects, []string{"admissionpolicy"}) {
			continue
		}
		c := &oracleCase{name: about.ID}
		c.Operation = about.Operation
		check(t, c.readCorpus(about.Files))
		cases = append(cases, c)
	}
	if skipped := corpus.NotRun(); skipped != "" {
		t.Log(skipped)
	}
	return cases
}

// readCorpus reads a case of the corpus, whose namespaces are any that its author
// thought of.
func (c *oracleCase) readCorpus(files corpus.Files) (err error) {
	c.policyText = string(files["policy.yaml"])
	namespaces := map[string]bool{placeholder: true}
	for name, into := range map[string]*string{"world.yaml": &c.worldText, "objects.yaml": &c.objText} {
		objects, err := readManifests(string(files[name]))
		if err != nil {
			return err
		}
		for _, u := range objects {
			if u.GetKind() == "Job" || u.GetKind() == "Service" {
				continue // the server gives them something that it refuses in a second one; TestConformance has its answer
			}
			if isNamespace(u) {
				u.SetName(corpusNamespace(u.GetName()))
				namespaces[u.GetName()] = true
			} else {
				u.SetNamespace(corpusNamespace(u.GetNamespace()))
			}
			if *into, err = appendManifest(*into, u); err != nil {
				return err
			}
		}
	}
	if err := c.readCorpusValues(files["values.yaml"], namespaces); err != nil {
		return err
	}
	objects, err := readManifests(c.objText)
	for _, u := range objects {
		if err == nil && !isNamespace(u) && !namespaces[u.GetNamespace()] {
			namespaces[u.GetNamespace()] = true
			err = c.addNamespace(u.GetNamespace(), nil)
		}
	}
	return err
}

func (c *oracleCase) addNamespace(name string, labels map[string]string) (err error) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(name)
	u.SetLabels(labels)
	c.worldText, err = appendManifest(c.worldText, u)
	return err
}

// readCorpusValues makes Namespaces with the labels that values describe.
func (c *oracleCase) readCorpusValues(text []byte, namespaces map[string]bool) error {
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
		name := corpusNamespace(n.Name)
		namespaces[name] = true
		if err := c.addNamespace(name, n.Labels); err != nil {
			return err
		}
	}
	return nil
}

func corpusNamespace(name string) string {
	if name == "" || name == "default" {
		return placeholder
	}
	return placeholder + "-" + name
}

func appendManifest(text string, u *unstructured.Unstructured) (string, error) {
	out, err := yaml.Marshal(u.Object)
	return text + "---\n" + string(out), err
}
