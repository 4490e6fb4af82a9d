package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// testCase is one parsed file of the corpus.
type testCase struct {
	name          string
	archive       *txtar.Archive
	notIdempotent string // why, if it is not
	live, world   []*unstructured.Unstructured
	request       engine.Request
}

// readCases reads all cases of a directory, in the order of their names.
func readCases(dir fs.FS) ([]*testCase, error) {
	names, err := fs.Glob(dir, "*.txtar")
	if err != nil {
		return nil, err
	}
	var cases []*testCase
	for _, name := range names {
		content, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		c, err := parseCase(name, content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

func parseCase(name string, content []byte) (*testCase, error) {
	c := &testCase{name: strings.TrimSuffix(path.Base(name), ".txtar"), archive: txtar.Parse(content)}
	if len(bytes.TrimSpace(c.archive.Comment)) == 0 {
		return nil, errors.New("the case does not say what it shows")
	}
	for line := range strings.Lines(string(c.archive.Comment)) {
		if reason, found := strings.CutPrefix(line, "not idempotent: "); found {
			c.notIdempotent = strings.TrimSpace(reason)
		}
	}
	if err := c.checkSections(); err != nil {
		return nil, err
	}
	var err error
	if c.live, err = c.objects("live.yaml"); err != nil {
		return nil, err
	}
	if c.world, err = c.objects("world.yaml"); err != nil {
		return nil, err
	}
	if len(c.live) == 0 {
		return nil, errors.New("live.yaml: no object to evaluate")
	}
	c.request, err = c.readRequest()
	return c, err
}

// checkSections refuses names that nothing reads: a typing error in one would
// leave something untested.
func (c *testCase) checkSections() error {
	for _, file := range c.archive.Files {
		switch file.Name {
		case "live.yaml", "world.yaml", "request.yaml", "want.yaml", "want.error":
			continue
		}
		if strings.HasPrefix(file.Name, "trace.") || (strings.HasPrefix(file.Name, "policy.") && strings.HasSuffix(file.Name, ".yaml")) {
			continue
		}
		return fmt.Errorf("%s: no such section", file.Name)
	}
	return nil
}

func (c *testCase) section(name string) (string, bool) {
	for _, file := range c.archive.Files {
		if file.Name == name {
			return string(file.Data), true
		}
	}
	return "", false
}

func (c *testCase) objects(section string) ([]*unstructured.Unstructured, error) {
	text, _ := c.section(section)
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var out []*unstructured.Unstructured
	for {
		u := new(unstructured.Unstructured)
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", section, err)
		}
		if u.Object != nil {
			out = append(out, u)
		}
	}
}

// policies are the documents of a dialect; none where the case has none for it.
func (c *testCase) policies(dialect string) ([]engine.Document, error) {
	section := "policy." + dialect + ".yaml"
	objects, err := c.objects(section)
	documents := make([]engine.Document, len(objects))
	for i, u := range objects {
		documents[i] = engine.NewDocument(u, section)
	}
	return documents, err
}

func (c *testCase) readRequest() (engine.Request, error) {
	text, _ := c.section("request.yaml")
	var r struct {
		Operation engine.Operation `json:"operation"`
		User      string           `json:"user"`
		Groups    []string         `json:"groups"`
	}
	if err := sigsyaml.UnmarshalStrict([]byte(text), &r); err != nil {
		return engine.Request{}, fmt.Errorf("request.yaml: %w", err)
	}
	if r.Operation == "" {
		r.Operation = engine.OperationAuto
	}
	return engine.Request{Operation: r.Operation, User: engine.UserInfo{Username: r.User, Groups: r.Groups}}, nil
}
