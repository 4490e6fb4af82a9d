package report_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// browserTime bounds one page in the browser; the machine may be busy.
const browserTime = 2 * time.Minute

// browser returns the program that CHROMIUM names, or that is on the PATH. Where there is none it skips the
// test, unless CHROMIUM_REQUIRED is set.
func browser(t *testing.T) string {
	t.Helper()
	tier.Night(t, "TestHostileTextsAreText and TestContentPolicy")
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "no Chromium: install it (on Debian: apt-get install chromium), or set CHROMIUM to its path"
	if os.Getenv("CHROMIUM_REQUIRED") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// opened is what a browser makes of a page: its elements after its script has run, and all that follows from
// it.
func opened(t *testing.T, page string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), browserTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, browser(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--proxy-server=127.0.0.1:9", "--window-size=1280,900", "--virtual-time-budget=20000", "--user-data-dir="+profile(t), "--dump-dom", "file://"+path).Output()
	if err != nil {
		t.Fatalf("the browser went away: %v", err)
	}
	return string(out)
}

// profile is a new directory for a browser, whose helpers may still write to it for a moment after it has
// gone.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chromium-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 50 {
			if os.RemoveAll(dir) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	return dir
}

// acting is a page with a script of the test, which its content policy would refuse.
func acting(page, script string) string {
	page = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(page, "")
	return strings.Replace(page, "</body>", `<script>(async () => {
		while (performance.getEntriesByName("ready").length === 0) await new Promise(done => setTimeout(done, 20));
		const until = async is => { while (!is()) await new Promise(done => setTimeout(done, 20)); };
		const rows = () => [...document.querySelectorAll("#list h3")].map(e => e.textContent).join("; ");
		const says = [];
		`+script+`
		document.body.setAttribute("data-says", says.join("\n"));
	})()</script></body>`, 1)
}

var reviewOptions = output.Options{
	Context: output.Context{Context: "production", Server: "https://10.0.0.1:6443", User: "alice", Operation: "auto", Version: "v1.2.3", Time: "2026-01-02T15:04:05Z"},
	Hint:    next("kubectl mutate apply-existing -A -p policies/"),
}

// The script lists all changes, builds one that is opened, and filters.
func TestInABrowser(t *testing.T) {
	got := opened(t, acting(pageOf(t, reviewOptions, review()), `
		says.push(rows(), document.querySelector("#count").textContent);
		document.querySelector("#list li:nth-child(4) summary").click();
		await until(() => document.querySelectorAll("#list .diff .add").length === 1);
		says.push(document.querySelector("#list .rule h4").textContent);
		document.querySelector("#beside").click();
		says.push([...document.querySelectorAll("#list .sides td.del, #list .sides td.add")].map(e => e.textContent.trim()).join(" | "));
		const press = key => { document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})); return document.activeElement.querySelector(".name")?.textContent };
		document.activeElement.blur();
		says.push([press("j"), press("j"), press("k")].join(" "));
		document.querySelector('[data-filter="policy"][data-value="gatekeeper AssignImage pin"] button').click();
		await until(() => document.querySelectorAll("#list h3").length === 2);
		says.push(rows(), document.querySelector("[name=policy]").value);
		document.querySelector("#filters [type=reset]").click();
		await until(() => document.querySelectorAll("#list h3").length === 5);
		const chosen = document.querySelector("[name=namespace]");
		chosen.value = "payments";
		chosen.dispatchEvent(new Event("input", {bubbles: true}));
		await until(() => document.querySelectorAll("#list h3").length === 2);
		says.push(document.querySelector("#count").textContent);`))
	want := `data-says="ConfigMap payments/broken; ConfigMap shop/image-0 and 2 more; ConfigMap shop/settings-0 and 11 more, in 3 namespaces; ConfigMap shop/script; Secret shop/password
5 changes, 18 objects.
kyverno team-labels/add policies/labels.yaml:3
echo one | echo two
payments/broken shop/image-0 payments/broken
ConfigMap payments/broken; ConfigMap shop/image-0 and 2 more
gatekeeper AssignImage pin
2 changes, 5 objects (of 5 changes)."`
	if !strings.Contains(got, want) {
		i := max(strings.Index(got, "data-says"), 0)
		t.Errorf("the page says %.1000s", got[i:])
	}
}

// Hostile strings add no element to a page, and run nothing.
func TestInABrowserHostileTextsDoNothing(t *testing.T) {
	ordinary := append(many(300), review()...)
	for i := range ordinary {
		ordinary[i] = warning(failing(ordinary[i], "reason"), "code", "text", "", 1)
		ordinary[i].Steps[0].Warnings, ordinary[i].Steps[0].NotIdempotent = []engine.Warning{"warning"}, "random"
	}
	options := reviewOptions
	options.Context, options.Hint = harmfulContext, next(markup)
	tag := regexp.MustCompile(`<[a-zA-Z][^\s>]*`)
	known := tag.FindAllString(opened(t, pageOf(t, options, ordinary, errors.New(markup))), -1)
	got := opened(t, pageOf(t, options, harmful(), errors.New(markup)))
	if !strings.Contains(got, "<title>Mutation preview on ") || !strings.Contains(got, `id="count"`) {
		t.Errorf("no page, or another title: %.500s", got)
	}
	for _, name := range tag.FindAllString(got, -1) {
		if !slices.Contains(known, name) {
			t.Errorf("the page has a new %s", name)
		}
	}
}
