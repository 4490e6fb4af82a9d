package plugin_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// TestVerbosity runs a preview of a Secret with levels of -v. No body is logged, for client-go knows no
// Secrets, unless these may be shown.
func TestVerbosity(t *testing.T) {
	answers := discovery("v1 secrets Secret get,list", "v1 namespaces Namespace get,list cluster")
	answers["/api/v1/namespaces/default"] = defaultNamespace
	answers["/api/v1/namespaces/default/secrets"] = `{"apiVersion": "v1", "kind": "SecretList", "items": [{"metadata": {"name": "s", "namespace": "default"}, "data": {"password": "aHVudGVyMi1odW50ZXIy"}}]}`
	useServer(t, serve(t, answers, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	policy := write(t, t.TempDir(), "policy.yaml", `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Secret]}}]}, mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}}]}}`)
	for level, want := range map[string][]string{
		"0":  {},
		"6":  {`"Response" verb="GET" url="http`, `/api/v1/namespaces/default/secrets?limit=500" status="200 OK" milliseconds=`},
		"7":  {`"Request" verb="GET"`, "Accept: application/json"},
		"10": {`"Request" verb="GET"`, "Accept: application/json"},
	} {
		t.Run(level, func(t *testing.T) {
			defer klog.CaptureState().Restore()
			stderr := os.Stderr
			defer func() { os.Stderr = stderr }()
			raw, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
			if err != nil {
				t.Fatal(err)
			}
			os.Stderr = raw              // klog writes errors there unless it is told not to
			var out, errOut bytes.Buffer // as klog writes to it when the command has ended
			streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
			args := []string{"preview", "-q", "-p", policy, "-v", level}
			if code := plugin.Run(t.Context(), plugin.NewCommand("kubectl mutate", streams), args, streams); code != process.ExitChanges {
				t.Errorf("exit code %d", code)
			}
			klog.Error("an error of a library")
			klog.Flush()
			if text, err := os.ReadFile(raw.Name()); err != nil || len(text) > 0 && level != "0" {
				t.Errorf("written past the masker: %s, %v", text, err)
			}
			for _, part := range want {
				if !strings.Contains(errOut.String(), part) {
					t.Errorf("no %s in\n%s", part, errOut.String())
				}
			}
			for _, secret := range []string{"hunter2", "aHVudGVyMi1odW50ZXIy", "request.go"} {
				if strings.Contains(out.String()+errOut.String(), secret) {
					t.Errorf("%s in\n%s", secret, errOut.String())
				}
			}
			if len(want) == 0 && errOut.Len() > 0 {
				t.Errorf("logged:\n%s", errOut.String())
			}
		})
	}
	t.Run("shown", func(t *testing.T) {
		defer klog.CaptureState().Restore()
		if _, _, errOut := runCommand(t, "preview", "-q", "-p", policy, "-v=8", "--show-secrets"); !strings.Contains(errOut, "Response Body") {
			t.Errorf("no bodies in\n%s", errOut)
		}
	})
}
