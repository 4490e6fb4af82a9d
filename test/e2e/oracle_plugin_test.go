package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/clientcmd"
)

// oraclePlugin is kubectl-mutate.
type oraclePlugin struct{ program, dir, kubeconfig string }

func newOraclePlugin(dir string) (*oraclePlugin, error) {
	p := &oraclePlugin{
		program: filepath.Join(dir, "kubectl-mutate"), dir: dir,
		kubeconfig: filepath.Join(dir, "kubeconfig"),
	}
	return p, clientcmd.WriteToFile(*server.as("", "default"), p.kubeconfig)
}

// prediction is what kubectl-mutate says about a case.
type prediction struct {
	answers  []answer // of the live objects, in their order; what is to be stored has the server's metadata
	refusals []string // of policies
	stderr   string
}

// preview asks about one case, by files of its policies: about the live objects,
// or about manifests where the case is about their creation.
func (p *oraclePlugin) preview(ctx context.Context, c *oracleCase) (prediction, error) {
	dir := filepath.Join(p.dir, c.namespace)
	// A server takes a policy for resources that it does not have.
	args := []string{"-A", "-p", filepath.Join(dir, "policies"), "--operation", c.Operation, "--allow-unknown-kinds=*"}
	if err := writeManifests(filepath.Join(dir, "policies"), c.policies); err != nil {
		return prediction{}, err
	}
	if c.Operation == operationCreate {
		if err := errors.Join(writeManifests(filepath.Join(dir, "objects"), c.live), writeManifests(filepath.Join(dir, "world"), c.existing)); err != nil {
			return prediction{}, err
		}
		args = append(args, "-f", filepath.Join(dir, "objects"), "--world", filepath.Join(dir, "world"))
	}
	if c.User != "" {
		args = append(args, "--request-user", c.User)
	}
	for _, g := range c.Groups {
		args = append(args, "--request-group", g)
	}
	found, stderr, err := p.run(ctx, args...)
	if err != nil {
		return prediction{}, err
	}
	said := prediction{stderr: stderr}
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "error: ") {
			said.refusals = append(said.refusals, strings.TrimSpace(line))
		}
	}
	for _, object := range c.live {
		a, ok := found[titleOf(object)]
		if !ok {
			a = answer{outcome: isUnchanged, object: object}
		}
		said.answers = append(said.answers, a)
		delete(found, titleOf(object))
	}
	for name, a := range found {
		if a.outcome != isUnchanged {
			return said, fmt.Errorf("%s belongs to another case and is %s", name, a.outcome)
		}
	}
	return said, nil
}

// installed asks about all live objects and all installed policies.
func (p *oraclePlugin) installed(ctx context.Context, _ []*oracleCase) (map[string]answer, error) {
	found, _, err := p.run(ctx, "-A", "--from-cluster", "--operation", operationUpdate)
	return found, err
}

// manifests asks about all objects and policies without a cluster.
func (p *oraclePlugin) manifests(ctx context.Context, cases []*oracleCase) (map[string]answer, error) {
	var policies, world, objects []*unstructured.Unstructured
	for _, c := range cases {
		policies, world, objects = slices.Concat(policies, c.policies), slices.Concat(world, c.existing), slices.Concat(objects, c.live)
	}
	dir := filepath.Join(p.dir, "manifests")
	var all []string
	for _, part := range []struct {
		name    string
		objects []*unstructured.Unstructured
	}{{"policies", policies}, {"world", world}, {"objects", objects}} {
		all = append(all, filepath.Join(dir, part.name))
		if err := writeManifests(filepath.Join(dir, part.name), part.objects); err != nil {
			return nil, err
		}
	}
	found, _, err := p.run(ctx, "-p", all[0], "--world", all[1], "-f", all[2], "--operation", operationUpdate)
	return found, err
}

// run is a preview, by the names of the objects in its report.
func (p *oraclePlugin) run(ctx context.Context, args ...string) (map[string]answer, string, error) {
	cmd := exec.CommandContext(ctx, p.program, append([]string{"preview", "-o", "json", "--show-secrets", "--exit-code=false"}, args...)...)
	cmd.Env = []string{"HOME=" + p.dir, "KUBECONFIG=" + p.kubeconfig}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exited *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exited) {
		return nil, "", err
	}
	if strings.Contains(stderr.String(), "goroutine ") {
		return nil, "", fmt.Errorf("kubectl-mutate panics: %s", stderr.String())
	}
	if stdout.Len() == 0 {
		return nil, stderr.String(), nil // no policy compiled
	}
	var report struct {
		Changes []reportedChange `json:"changes"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		return nil, "", fmt.Errorf("%w\n%s%s", err, stdout.String(), stderr.String())
	}
	found := map[string]answer{}
	for _, c := range report.Changes {
		u, a, err := c.answer()
		if err != nil {
			return nil, "", err
		}
		found[titleOf(u)] = a
	}
	return found, stderr.String(), nil
}

// reportedChange is a part of a preview's report.
type reportedChange struct {
	Object struct {
		APIVersion, Kind, Namespace, Name string
	} `json:"object"`
	After json.RawMessage `json:"after"`
	Steps []struct {
		Outcome, Reason string
	} `json:"steps"`
}

// answer returns the object of the change, and what the report says about it.
func (c *reportedChange) answer() (*unstructured.Unstructured, answer, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(c.Object.APIVersion)
	u.SetKind(c.Object.Kind)
	u.SetNamespace(c.Object.Namespace)
	u.SetName(c.Object.Name)
	for _, s := range c.Steps {
		if s.Outcome == isDenied || s.Outcome == "unsupported" {
			return u, answer{outcome: s.Outcome, message: s.Reason}, nil
		}
	}
	if len(c.After) == 0 {
		return u, answer{outcome: isUnchanged}, nil
	}
	after := &unstructured.Unstructured{}
	err := utiljson.Unmarshal(c.After, &after.Object)
	return u, answer{outcome: isChanged, object: after}, err
}

func writeManifests(dir string, objects []*unstructured.Unstructured) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i, u := range objects {
		text, err := u.MarshalJSON()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.json", i)), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
