package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Two users of one cluster, which a kubeconfig does not tell from two clusters behind one proxy: each object is shown for both, with a
// note, and written once, also by a rule that appends.
func TestFleetOfTwoUsersOfOneCluster(t *testing.T) {
	f := fleetTest{startClusters(t, "one"), programOf(t)}
	f.create(t, "one", fleetObject("Namespace", "shop", nil))
	for _, name := range []string{"app-0", "app-1"} {
		f.create(t, "one", fleetObject("ConfigMap", name, map[string]any{"data": map[string]any{"level": "="}}))
	}
	f.config.AuthInfos["two"] = f.config.AuthInfos["one"].DeepCopy()
	f.config.Contexts["two"] = &clientcmdapi.Context{Cluster: "one", AuthInfo: "two", Namespace: "shop"}

	const note = "contexts one and two have the same server and different users: if they are one cluster, its objects come twice"
	out, errOut := f.preview(t, 1, "--contexts", "one,two", "-o", "json")
	if r := readFleetReport(t, out); len(r.Changes) != 4 || r.Summary.Changed != 4 || !strings.Contains(errOut, note) {
		t.Errorf("got %+v\n%s", r, errOut)
	}

	appends := strings.Replace(fleetPolicy, "{level: info}", `{level: "{{ request.object.data.level }}x"}`, 1)
	check(t, os.WriteFile(filepath.Join(f.dir, "append.yaml"), []byte(appends), 0o600))
	code, out, errOut := f.run(t, f.program, "apply-existing", "configmaps", "-p", "append.yaml", "--contexts", "one,two", "--yes", "-o", "json")
	found := map[string]int{}
	for _, one := range readFleetReport(t, out).Results {
		found[one.Object.Cluster+" "+one.Outcome]++
	}
	if code != 3 || len(found) != 2 || found["one applied"] != 2 || found["two drifted"] != 2 || !strings.Contains(errOut, note) {
		t.Errorf("exit code %d, %v\n%s", code, found, errOut)
	}
	for _, name := range []string{"app-0", "app-1"} {
		if got := f.level(t, "one", name); got != "=x" {
			t.Errorf("level of %s is %q: it is written more than once", name, got)
		}
	}
}
