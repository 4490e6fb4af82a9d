// Package pictures makes the pictures of README.md and docs from runs of the program (make pictures), and fails where one is
// older than what it shows.
package pictures

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

var update = flag.Bool("update", false, "make the pictures anew; CHROMIUM names the browser")

const (
	pictures = "docs/pictures" // in the root of the repository, where all runs are
	maxBytes = 300_000         // of a picture, and of the report of 300 objects
	sums     = pictures + "/SHA256SUMS"
)

// run returns what a command prints.
func run(t *testing.T, args ...string) string {
	t.Helper()
	var out, problems bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &problems}
	if code := plugin.Run(t.Context(), plugin.NewCommand("kubectl mutate", streams, nil), args, streams); code == 2 {
		t.Fatalf("%s: %s", args, problems.String())
	}
	return out.String()
}

func TestTerminal(t *testing.T) {
	t.Chdir("../..")
	const command = "preview deployments -n shop -p examples/policies/workload-defaults.yaml -f examples/cluster"
	got := run(t, append(strings.Fields(command), "--color=always")...)
	for name, theme := range themes {
		path := filepath.Join(pictures, "preview-"+name+".svg")
		drawn := terminal("kubectl mutate "+command, got, theme)
		if *update {
			check(t, os.WriteFile(path, []byte(drawn), 0o644))
		}
		if committed, err := os.ReadFile(path); err != nil || string(committed) != drawn {
			t.Errorf("%s is older than what it shows: run make pictures (%v)", path, err)
		}
	}
}

// The pages are of 300 objects, and their sums are those of the pages that the pictures were taken of.
func TestPages(t *testing.T) {
	root, err := filepath.Abs("../..")
	check(t, err)
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS("testdata")))
	check(t, os.WriteFile(filepath.Join(dir, "cluster.yaml"), []byte(cluster()), 0o600))
	t.Chdir(dir)
	run(t, "preview", "-A", "-f", "cluster.yaml", "-p", "policies.yaml", "-o", "name", "--report", "html=report.html")
	run(t, "compare", "-A", "-f", "cluster.yaml", "-p", "policies.yaml", "--only", "labels", "--with", "rewritten.yaml", "--report", "html=comparison.html")

	var now strings.Builder
	for _, name := range []string{"report", "comparison"} {
		page := filepath.Join(dir, name+".html")
		text, err := os.ReadFile(page)
		check(t, err)
		if len(text) > maxBytes {
			t.Errorf("the page %s has %d bytes, want at most %d", name, len(text), maxBytes)
		}
		fmt.Fprintf(&now, "%x  %s.html\n", sha256.Sum256(text), name)
		if *update {
			photograph(t, page, filepath.Join(root, pictures, name+".png"))
		}
	}
	if *update {
		check(t, os.WriteFile(filepath.Join(root, sums), []byte(now.String()), 0o644))
	}
	if committed, err := os.ReadFile(filepath.Join(root, sums)); err != nil || string(committed) != now.String() {
		t.Errorf("%s/report.png or comparison.png is older than what it shows: run make pictures (%v)\n%s", pictures, err, now.String())
	}
}

// A drawing names the commands that there are, and the languages in admission order.
func TestDrawings(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../..", pictures, name))
		check(t, err)
		return string(text)
	}
	root := plugin.NewCommand("kubectl mutate", genericiooptions.NewTestIOStreamsDiscard(), nil)
	for _, words := range regexp.MustCompile(`class="command"[^>]*>([^<]*)<`).FindAllStringSubmatch(read("how-it-works.svg"), -1) {
		for name := range strings.SplitSeq(words[1], ", ") {
			name, option, _ := strings.Cut(name, " --")
			c, rest, err := root.Find(strings.Fields(name))
			if err != nil || len(rest) > 0 || option != "" && c.Flags().Lookup(option) == nil {
				t.Errorf("how-it-works.svg shows the command %q, which is not there: %v", words[1], err)
			}
		}
	}
	rest := read("rounds.svg")
	for _, d := range dialects.All() {
		_, after, found := strings.Cut(rest, ">"+languages[d.Name()]+"<")
		if !found || languages[d.Name()] == "" {
			t.Errorf("rounds.svg does not show %s in admission order", d.Name())
		}
		rest = after
	}
}

// languages are the dialects as rounds.svg names them.
var languages = map[string]string{
	"admissionpolicy": "MutatingAdmissionPolicy", "gatekeeper": "Assign, ModifySet, ...", "kyverno": "ClusterPolicy, Policy", "mutatingpolicy": "MutatingPolicy",
}

func TestPicturesAreSmall(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../" + pictures + "/*.*g")
	check(t, err)
	if len(paths) == 0 {
		t.Fatal("no pictures")
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		check(t, err)
		if info.Size() > maxBytes {
			t.Errorf("%s has %d bytes, want at most %d", path, info.Size(), maxBytes)
		}
	}
}

// photograph takes a picture of a page in headless Chromium.
func photograph(t *testing.T, page, path string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Getenv("CHROMIUM"), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
		"--proxy-server=127.0.0.1:9", "--window-size=1280,1600", "--virtual-time-budget=20000", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"),
		"--screenshot="+path, "file://"+page)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("CHROMIUM=%s: %v: %s", os.Getenv("CHROMIUM"), err, out)
	}
}

// cluster is 300 workloads in five namespaces, as a server returns them.
func cluster() string {
	var b strings.Builder
	for _, namespace := range namespaces {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, uid: ns-%[1]s}\n---\n", namespace)
	}
	for i := range 300 {
		kind, group := "Deployment", "apps/v1"
		switch {
		case i%10 == 8:
			kind = "StatefulSet"
		case i%10 == 9:
			kind, group = "CronJob", "batch/v1"
		}
		namespace := namespaces[i/3%len(namespaces)]
		name := fmt.Sprintf("%s-%03d", []string{"api", "worker", "gateway", "indexer"}[i%4], i)
		labels, annotations := fmt.Sprintf("app: %s", name), ""
		switch {
		case namespace == "payments":
			labels, annotations = labels+", app.kubernetes.io/managed-by: Helm", fmt.Sprintf("meta.helm.sh/release-name: %s, meta.helm.sh/release-namespace: payments", name)
		case i%15 == 2:
			annotations = fmt.Sprintf("argocd.argoproj.io/tracking-id: 'search:%s/%s:%s/%s'", strings.TrimSuffix(group, "/v1"), kind, namespace, name)
		case i%30 != 9:
			annotations = "contact: " + namespace + "@example.com"
		}
		pod := fmt.Sprintf("{metadata: {labels: {app: %s}}, spec: {containers: [{name: app, image: 'example/%[1]s:1.%d'}]}}", name, i%40)
		spec := fmt.Sprintf("{replicas: %d, selector: {matchLabels: {app: %s}}, template: %s}", i%5, name, pod)
		if kind == "CronJob" {
			spec = fmt.Sprintf("{schedule: '%d 3 * * *', jobTemplate: {spec: {template: %s}}}", i%60, strings.Replace(pod, "containers", "restartPolicy: Never, containers", 1))
		}
		fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: %s, uid: uid-%03d, labels: {%s}, annotations: {%s}}\nspec: %s\n---\n",
			group, kind, name, namespace, i, labels, annotations, spec)
	}
	return b.String()
}

var namespaces = []string{"shop", "payments", "search", "platform", "media"}

// theme is the colours of a terminal.
type theme struct {
	page, ink string
	colors    map[string]string // by the code that begins one
}

var themes = map[string]theme{
	"light": {"#ffffff", "#1f2328", map[string]string{"31": "#b3261e", "32": "#116329", "33": "#7d4e00", "36": "#0550ae"}},
	"dark":  {"#15171b", "#e6e8eb", map[string]string{"31": "#f7aca6", "32": "#a3dfb5", "33": "#f0c674", "36": "#8ab6f9"}},
}

// The measures of a terminal, in pixels.
const (
	fontSize = 14
	advance  = 8.43
	leading  = 19
	margin   = 16
)

var painted = regexp.MustCompile("\x1b\\[([0-9]+)m([^\x1b]*)\x1b\\[0m|([^\x1b]+)")

// terminal draws a command and what it prints, with its colors.
func terminal(command, printed string, of theme) string {
	lines := strings.Split("\x1b[1m$ "+command+"\x1b[0m\n"+strings.TrimSuffix(printed, "\n"), "\n")
	longest := 0
	var body strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&body, `<text x="%d" y="%d">`, margin, margin+fontSize+i*leading)
		columns := 0
		for _, span := range painted.FindAllStringSubmatch(l, -1) {
			code, text := span[1], strings.ReplaceAll(span[2]+span[3], " ", "\u00a0") // two spaces are one in SVG
			columns += len([]rune(text))
			switch {
			case code == "1":
				fmt.Fprintf(&body, `<tspan font-weight="bold">%s</tspan>`, html.EscapeString(text))
			case code != "":
				fmt.Fprintf(&body, `<tspan fill="%s">%s</tspan>`, of.colors[code], html.EscapeString(text))
			default:
				body.WriteString(html.EscapeString(text))
			}
		}
		longest = max(longest, columns)
		body.WriteString("</text>\n")
	}
	width, height := 2*margin+int(float64(longest)*advance), 2*margin+len(lines)*leading
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%s">
<rect width="%[1]d" height="%[2]d" rx="8" fill="%[4]s" stroke="#81868f"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="%d" fill="%s">
%s</g>
</svg>
`, width, height, html.EscapeString(command), of.page, fontSize, of.ink, body.String())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
