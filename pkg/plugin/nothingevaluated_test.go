package plugin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// manifests are the files that the commands of this file are run on.
func manifests(t *testing.T) string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/nothing-evaluated.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, dir, f.Name, string(f.Data))
	}
	return dir
}

// ending is how a command ends: its exit code, and a part of what it prints.
type ending struct {
	code int
	says string // on standard output or standard error
}

// missing begins what is said of kinds that are not known.
const missing = "neither Kubernetes nor the manifests have a "

// RunE runs commands on the manifests.
func RunE(t *testing.T, commands map[string]ending) {
	t.Helper()
	t.Chdir(manifests(t))
	t.Setenv("KUBECONFIG", "/dev/null")
	for command, want := range commands {
		t.Run(command, func(t *testing.T) { runs(t, command, want.code, want.says) })
	}
}

// A run that has no policy or no object is an error.
func TestNothingToEvaluate(t *testing.T) {
	RunE(t, map[string]ending{
		"preview -f settings.yaml":                                     {2, "no policies"},
		"preview -p empty.yaml -f settings.yaml":                       {2, "no policy in empty.yaml"},
		"preview -p - -f settings.yaml":                                {2, "stdin: there is no object in standard input"},
		"preview -p known.yaml -p - -f settings.yaml":                  {3, "error: stdin: there is no object in standard input"},
		"preview -p known.yaml -f settings.yaml -f -":                  {2, "error: stdin: there is no object in standard input"},
		"preview -p known.yaml -f settings.yaml --world -":             {2, "error: stdin: there is no object in standard input"},
		"preview -p known.yaml -f settings.yaml --world empty.yaml":    {2, "error: there is no object in empty.yaml"},
		"preview -p known.yaml -f settings.yaml --world comments.yaml": {2, "error: there is no object in comments.yaml"},
		"preview -p known.yaml -f settings.yaml --world list.yaml":     {2, "error: there is no object in list.yaml"},
		"preview -p known.yaml -f -":                                   {2, "error: stdin: there is no object in standard input; has the command before the pipe failed?"},
		"preview -p known.yaml -f empty.yaml":                          {2, "error: there is no object in empty.yaml"},
		"preview -p known.yaml -f comments.yaml":                       {2, "there is no object in comments.yaml"},
		"preview -p known.yaml -f list.yaml":                           {2, "there is no object in list.yaml"},
		"preview -p known.yaml -f empty.yaml,list.yaml":                {2, "in empty.yaml, list.yaml"},
		"preview -p known.yaml -k nothing":                             {2, "there is no object in nothing"},
		"preview -p known.yaml -f empty.yaml -o json":                  {2, "there is no object in empty.yaml"},
		"explain configmap/a -p known.yaml -f empty.yaml":              {2, "there is no object in empty.yaml"},
		"preview widgets -p known.yaml -f settings.yaml":               {2, `there is no resource type "widgets"`},
		"preview deployment/b -n shop -p known.yaml -f settings.yaml":  {2, `deployments.apps "b" not found`},
		"preview configmap/b -p known.yaml -f settings.yaml":           {2, `configmaps "b" not found`},
	})
}

// A kind that is known may have no object; a strict run needs one.
func TestKindsWithoutObjects(t *testing.T) {
	RunE(t, map[string]ending{
		"preview -p known.yaml -f settings.yaml -n other":        {0, "1 rule matched no object: kyverno "},
		"preview -p known.yaml -f settings.yaml -l a=b":          {0, "1 rule matched no object: kyverno "},
		"preview -p other.yaml -f settings.yaml":                 {0, "1 rule matched no object: kyverno "},
		"preview -p request.yaml -f settings.yaml":               {0, "matched no object"},
		"preview -p other.yaml -f settings.yaml --strict":        {3, "error: other.yaml:1: other/r matches no object of the run"},
		"preview -p known.yaml -f settings.yaml -l a=b --strict": {3, "known/r matches no object of the run"},
		"preview -p known.yaml -f settings.yaml --strict":        {1, "1 would change"},
		// What waits for a deletion meets nothing unless that is asked for.
		"preview -p deletion.yaml -f settings.yaml --strict -o name": {0, "--operation=DELETE previews that"},
		// Kyverno derives rules for controllers: one of them that meets an object is enough.
		"preview -p pods.yaml -p podscel.yaml -f workload.yaml --strict":                       {1, "1 would change"},
		"preview -p pods.yaml -p podscel.yaml -f containers.yaml --strict --only pods,podscel": {1, "1 would change"},
		"preview -p pods.yaml -f settings.yaml --strict -o name":                               {3, "error: pods.yaml:1: pods/r matches no object of the run"},
		"preview -p podscel.yaml -f settings.yaml --strict -o name":                            {3, "error: podscel.yaml:1: podscel matches no object of the run"},
	})
}

// A kind that there is not is an error of its policy, in every language.
func TestUnknownKinds(t *testing.T) {
	RunE(t, map[string]ending{
		"preview -p lower.yaml -f settings.yaml":               {3, `error: lower.yaml:8: ClusterPolicy lower, rule r: spec.rules[0].match.any[0].resources.kinds[0]: ` + missing + `kind "configmap", so this has no effect; did you mean "ConfigMap"?`},
		"preview -p plural.yaml -f settings.yaml":              {3, missing + `kind "Deployments", so this has no effect; did you mean "Deployment"?`},
		"preview -p typo.yaml -f settings.yaml":                {3, missing + `kind "Deploymnet", so this has no effect; did you mean "Deployment"?`},
		"preview -p wildcard.yaml -f settings.yaml":            {3, missing + `kind "Wid*"`},
		"preview -p group.yaml -f settings.yaml":               {3, missing + `kind "Deployment" of v1, so this has no effect; did you mean "Deployment" of apps/v1?`},
		"preview -p version.yaml -f settings.yaml":             {3, missing + `kind "ConfigMap" in version v7, so this has no effect; did you mean "ConfigMap" of v1?`},
		"preview -p beside.yaml -f settings.yaml":              {3, missing + `kind "Widget", so this has no effect`},
		"preview -p all.yaml -f settings.yaml":                 {3, `match.all[1].resources.kinds[0]: ` + missing + `kind "pod"`},
		"preview -p flat.yaml -f settings.yaml":                {3, `match.resources.kinds[0]: ` + missing + `kind "pod"`},
		"preview -p exclude.yaml -f settings.yaml":             {3, `exclude.any[0].resources.kinds[0]: ` + missing + `kind "secret"`},
		"preview -p target.yaml -f settings.yaml":              {3, `mutate.targets[0].kind: ` + missing + `kind "secret" of v1`},
		"preview -p exception.yaml -f settings.yaml":           {3, `spec.match.any[0].resources.kinds[0]: ` + missing + `kind "configmap"`},
		"preview -p map.yaml -f settings.yaml":                 {3, `error: map.yaml:5: MutatingAdmissionPolicy map: spec.matchConstraints.resourceRules[0].resources[0]: ` + missing + `resource "secret" of v1, so this has no effect; did you mean "secrets"?`},
		"preview -p map-exclude.yaml -f settings.yaml":         {3, `spec.matchConstraints.excludeResourceRules[0].resources[0]: ` + missing + `resource "deployments" of v1, so this has no effect; did you mean "deployments" of apps/v1?`},
		"preview -p map-params.yaml -f settings.yaml":          {3, `spec.paramKind.kind: ` + missing + `kind "configmap" of v1, so this has no effect; did you mean "ConfigMap"?`},
		"preview -p slash.yaml -f settings.yaml":               {3, `kinds[0]: stands for the subresource Deployment of the kind apps: a group stands before a version, as in apps/v1/Deployment`},
		"preview -p map-binding.yaml -f settings.yaml":         {3, `MutatingAdmissionPolicyBinding bound: spec.matchResources.resourceRules[0].resources[0]: ` + missing + `resource "ConfigMap"`},
		"preview -p mpol.yaml -f settings.yaml":                {3, `MutatingPolicy mpol: spec.matchConstraints.resourceRules[0].resources[0]: ` + missing + `resource "pod" of v1`},
		"preview -p mpol-target.yaml -f settings.yaml":         {3, `spec.targetMatchConstraints.resourceRules[0].resources[0]: ` + missing + `resource "secret" of v1`},
		"preview -p gatekeeper.yaml -f settings.yaml":          {3, `AssignMetadata gatekeeper: spec.match.kinds[0].kinds[0]: ` + missing + `kind "configmap" in the core group`},
		"preview -p applyto.yaml -f settings.yaml":             {3, `Assign applyto: spec.applyTo[0].kinds[1]: ` + missing + `kind "pod" of v1, so this has no effect; did you mean "Pod"?`},
		"preview -p beside.yaml -f settings.yaml -o json":      {3, `"problems": [`},
		"preview -p sub.yaml -f settings.yaml":                 {3, missing + `subresource "statuss" of the kind "Pod", so this has no effect; did you mean "status"?`},
		"preview -p sub-map.yaml -f settings.yaml":             {3, missing + `subresource "exce" of the resource "pods" of v1, so this has no effect; did you mean "exec"?`},
		"preview -p sub-target.yaml -f settings.yaml":          {3, `mutate.targets[0].kind: ` + missing + `subresource "scal" of the kind "Deployment" of apps/v1, so this has no effect; did you mean "scale"?`},
		"preview -p sub-custom.yaml -f settings.yaml,crd.yaml": {3, missing + `subresource "status" of the kind "Widget", so this has no effect`},
		"explain configmap/a -p lower.yaml -f settings.yaml":   {3, `did you mean "ConfigMap"?`},
	})
}

// Unknown kinds can be made known, allowed or left out.
func TestUnknownKindsThatAreMeant(t *testing.T) {
	RunE(t, map[string]ending{
		"preview -p beside.yaml -f settings.yaml --world crd.yaml":             {1, "1 would change"},
		"preview -p beside.yaml -p crd.yaml -f settings.yaml":                  {1, "1 would change"},
		"preview -p beside.yaml -f settings.yaml,crd.yaml":                     {1, "1 would change"},
		"preview -p beside.yaml -f settings.yaml --world widget.yaml":          {1, "1 would change"},
		"preview -p beside.yaml -f settings.yaml --allow-unknown-kinds=Widget": {1, "1 would change"},
		"preview -p beside.yaml -f settings.yaml --allow-unknown-kinds=W*":     {1, "1 would change"},
		"preview -p beside.yaml -f settings.yaml --allow-unknown-kinds=Other":  {3, "note: if these kinds are missing on purpose, add --allow-unknown-kinds=Widget"},
		"preview -p beside.yaml -p known.yaml -f settings.yaml --skip beside":  {1, "1 would change"},
		"preview -p lower.yaml -p known.yaml -f settings.yaml --only known":    {1, "1 would change"},
	})
}

// The inventory says what kinds are.
func TestPoliciesTellKinds(t *testing.T) {
	RunE(t, map[string]ending{
		"policies -p known.yaml":                               {0, "ConfigMap"},
		"policies -p lower.yaml":                               {0, "configmap (unknown)"},
		"policies -p lower.yaml -o wide":                       {0, `warning: lower.yaml:8: ClusterPolicy lower, rule r: spec.rules[0].match.any[0].resources.kinds[0]: ` + missing},
		"policies -p lower.yaml -o json":                       {0, `"configmap (unknown)"`},
		"policies -p lower.yaml --strict":                      {3, "error: lower.yaml:8"},
		"policies -p map.yaml":                                 {0, "secret (unknown)"},
		"policies -p beside.yaml --allow-unknown-kinds=Widget": {0, "Widget"},
		"policies -p field.yaml":                               {3, "error: field.yaml:8"},
		"policies -p known.yaml -p settings.yaml --strict":     {0, "known"}, // policies may read ConfigMaps
		"policies -p known.yaml -p service.yaml --strict":      {3, "Service shop/web is not a policy: ignored"},
	})
}

// What is a warning about a policy is an error of a strict run.
func TestStrict(t *testing.T) {
	RunE(t, map[string]ending{
		"preview -p field.yaml -f settings.yaml":                           {3, "error: field.yaml:8: ClusterPolicy field, rule r: spec.rules[0].mutat: unknown field"},
		"preview -p field.yaml -f settings.yaml -q":                        {3, "error: field.yaml:8: ClusterPolicy field, rule r: spec.rules[0].mutat: unknown field"},
		"preview -p old.yaml -f settings.yaml":                             {1, "warning: old.yaml:1: MutatingPolicy old: apiVersion: v1alpha1 is deprecated"},
		"preview -p old.yaml -f settings.yaml --strict":                    {3, "error: old.yaml:1: MutatingPolicy old: apiVersion: v1alpha1 is deprecated"},
		"preview -p old.yaml -f settings.yaml --strict -q":                 {3, "error: old.yaml:1: MutatingPolicy old: apiVersion: v1alpha1 is deprecated"},
		"preview -p added.yaml -f containers.yaml":                         {1, "would judge it on the first one for all"},
		"preview -p added.yaml -f containers.yaml --strict":                {3, "error: added.yaml:1: added/r: spec.containers: +() is judged on each element; Kyverno 1.19 would judge it on the first one for all (on Pod shop/web)"},
		"preview -p known.yaml -p comments.yaml -f settings.yaml":          {1, "warning: comments.yaml: there is no object in it"},
		"preview -p known.yaml -p comments.yaml -f settings.yaml --strict": {3, "error: comments.yaml: there is no object in it"},
		"preview -p v3.yaml -f settings.yaml":                              {3, "error: v3.yaml:1: ClusterPolicy v3: apiVersion: kyverno.io/v3 is no version of ClusterPolicy: use v1 or v2beta1"},
		"preview -p scope.yaml -f settings.yaml --strict":                  {3, `"Everywhere" is neither Namespaced nor Cluster, so it filters nothing`},
		"preview -p known.yaml -p service.yaml -f settings.yaml":           {1, "warning: service.yaml:1: Service shop/web is not a policy: ignored"},
		"preview -p known.yaml -p service.yaml -f settings.yaml --strict":  {3, "error: service.yaml:1: Service shop/web is not a policy: ignored"},
	})
}

// A rule that asks for labels of a Namespace which is not among the manifests leaves the run incomplete.
func TestNamespacesThatAreMissing(t *testing.T) {
	RunE(t, map[string]ending{
		"preview -p ns-kyverno.yaml -f settings.yaml":                      {3, "error: cannot read Namespace shop: it is not there, and rules that ask for its labels are evaluated as if it had none; --world adds it to manifests"},
		"preview -p ns-map.yaml -f settings.yaml":                          {3, "cannot read Namespace shop"},
		"preview -p ns-object.yaml -f settings.yaml":                       {3, "cannot read Namespace shop"},
		"preview -p ns-mpol.yaml -f settings.yaml":                         {3, "cannot read Namespace shop"},
		"preview -p ns-gatekeeper.yaml -f settings.yaml":                   {3, "cannot read Namespace shop"},
		"preview -p ns-kyverno.yaml -f settings.yaml --world shop.yaml":    {1, "1 would change"},
		"preview -p ns-map.yaml -f settings.yaml --world shop.yaml":        {1, "1 would change"},
		"preview -p ns-object.yaml -f settings.yaml --world shop.yaml":     {1, "1 would change"},
		"preview -p ns-mpol.yaml -f settings.yaml --world shop.yaml":       {1, "1 would change"},
		"preview -p ns-gatekeeper.yaml -f settings.yaml --world shop.yaml": {1, "1 would change"},
		"preview -p ns-name.yaml -f settings.yaml":                         {1, "1 would change (3 fields)"}, // three languages that ask for no more than its name
	})
}

// Settings of engines count where they stand among the manifests.
func TestSettingsAmongManifests(t *testing.T) {
	RunE(t, map[string]ending{
		"preview -p known.yaml -f settings.yaml --world kyverno.yaml":             {0, "0 would change"},
		"preview -p known.yaml -p kyverno.yaml -f settings.yaml":                  {0, "0 would change"},
		"preview -p known.yaml -f settings.yaml,kyverno.yaml -n shop":             {0, "0 would change"},
		"preview configmap/a -p known.yaml -f settings.yaml --world kyverno.yaml": {1, "1 would change"},
		"preview -p assign.yaml -f settings.yaml":                                 {1, "1 would change"},
		"preview -p assign.yaml -f settings.yaml --world config.yaml":             {0, "0 would change"},
		"preview -p assign.yaml -f settings.yaml,config.yaml":                     {0, "0 would change"},
		"preview -p assign.yaml -p config.yaml -f settings.yaml":                  {0, "0 would change"},
	})
}

// runs has a command end with a code, and say something.
func runs(t *testing.T, command string, code int, says string) {
	t.Helper()
	got, out, errOut := runCommand(t, strings.Fields(command)...)
	if got != code || !strings.Contains(out+errOut, says) {
		t.Errorf("exit code %d, want %d, and that it says %q:\n%s%s", got, code, says, out, errOut)
	}
}
