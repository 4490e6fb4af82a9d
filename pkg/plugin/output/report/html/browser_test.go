package html_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// show opens the page of a run, and waits for its script.
func (c *chromium) show(o output.Options, changes []engine.Change) {
	c.t.Helper()
	c.open(c.save(pageOf(c.t, o, changes)))
	c.until(ready)
}

func (c *chromium) save(page string) string {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// expect compares what an expression gives in the page.
func (c *chromium) expect(says string, want any, expression string) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.run(expression)); diff != "" {
		c.t.Errorf("%s: -want +got:\n%s", says, diff)
	}
}

const (
	ready  = `performance.getEntriesByName("ready").length === 1`
	rows   = `[...document.querySelectorAll("#list h3")].map(e => e.textContent)`
	status = `document.querySelector("#count").textContent`
)

var reviewOptions = output.Options{
	Context: output.Context{Context: "production", Server: "https://10.0.0.1:6443", User: "alice", Operation: "auto", Version: "v1.2.3", Time: "2026-01-02T15:04:05Z"},
	Hint:    next("kubectl mutate apply-existing -A -p policies/"),
}

func TestInABrowser(t *testing.T) {
	c := startChromium(t)
	c.size(1280, 900)
	c.show(reviewOptions, review())
	c.expect("all changes are listed, warnings first", []any{
		"ConfigMap payments/broken", "ConfigMap shop/image-0 and 2 more", "ConfigMap shop/settings-0 and 11 more, in 3 namespaces",
		"ConfigMap shop/script", "Secret shop/password",
	}, rows)
	c.expect("and counted", "5 changes, 18 objects.", status)
	c.picture("desktop")

	for _, step := range []struct {
		says string
		run  func(*chromium)
	}{
		{"a click opens a change and builds it", (*chromium).opensAChange},
		{"a click on a policy in the chart filters", (*chromium).filtersByPolicy},
		{"a namespace leaves its objects of a change", (*chromium).filtersByNamespace},
		{"the keyboard is enough", (*chromium).takesTheKeyboard},
		{"on paper everything that is shown is unfolded", (*chromium).printsOnPaper},
		{"on a phone nothing is wider than the screen", (*chromium).fitsAPhone},
	} {
		t.Run(step.says, func(t *testing.T) {
			c.t = t
			step.run(c)
		})
	}
	c.t = t
	c.quiet()
}

func (c *chromium) opensAChange() {
	c.expect("nothing is built before", 0.0, `document.querySelectorAll("#list .body").length`)
	c.click("#list li:nth-child(4) summary")
	c.until(`document.querySelectorAll("#list .diff .add").length === 1`)
	c.expect("the diff", []any{"-    echo one\n", "+    echo two\n"},
		`[...document.querySelectorAll("#list .del, #list .add")].filter(e => e.tagName === "SPAN").map(e => e.textContent)`)
	c.expect("the provenance", "kyverno team-labels/add policies/labels.yaml:3", `document.querySelector("#list .rule h4").textContent`)
	c.picture("desktop-open")
}

func (c *chromium) filtersByPolicy() {
	c.click(`[data-filter="policy"][data-value="gatekeeper AssignImage pin"] button`)
	c.expect("the rows", []any{"ConfigMap payments/broken", "ConfigMap shop/image-0 and 2 more"}, rows)
	c.expect("the filter says so", "gatekeeper AssignImage pin", `document.querySelector("[name=policy]").value`)
	c.click("#filters [type=reset]")
	c.until(status + ` === "5 changes, 18 objects."`)
}

func (c *chromium) filtersByNamespace() {
	c.run(`(() => { const s = document.querySelector("[name=namespace]"); s.value = "payments"; s.dispatchEvent(new Event("input", {bubbles: true})); })()`)
	c.until(status + ` === "2 changes, 5 objects (of 5 changes)."`)
	c.click("#list li:nth-child(2) summary")
	c.until(`document.querySelectorAll(".members li").length === 4`)
	c.click("#filters [type=reset]")
	c.until(status + ` === "5 changes, 18 objects."`)
}

func (c *chromium) takesTheKeyboard() {
	c.press("/", "/")
	c.expect("/ goes to the search", "text", `document.activeElement.name`)
	c.write("settings-7 team")
	c.until(status + ` === "1 change, 1 object (of 5 changes)."`)
	for range 9 { // over filters and buttons to the change
		c.press("Tab", "")
		if c.run(`document.activeElement.tagName`) == "SUMMARY" {
			break
		}
	}
	c.expect("Tab reaches the change", "ConfigMap payments/settings-7", `document.activeElement.querySelector("h3").textContent`)
	c.press("Enter", "\r")
	c.until(`document.querySelector("#list details").open && document.querySelectorAll("#list .fields li").length === 1`)
	c.press("Tab", "")
	c.expect("and its diff, to scroll it", "diff", `document.activeElement.className`)
	c.click("#filters [type=reset]")
	c.until(status + ` === "5 changes, 18 objects."`)
}

func (c *chromium) printsOnPaper() {
	if pdf := c.print("paper"); !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		c.t.Errorf("no PDF: %.20q", pdf)
	}
	c.expect("each change was built for it", 5.0, `document.querySelectorAll("#list .body").length`)
	c.expect("and folded again", 0.0, `document.querySelectorAll("#list details[open]").length`)
}

func (c *chromium) fitsAPhone() {
	c.size(360, 740)
	c.click("#open")
	c.expect("the width", 360.0, `document.documentElement.scrollWidth`)
	c.run(`scrollTo(0, 0)`)
	c.picture("phone")
	c.run(`document.querySelector("#list").scrollIntoView()`)
	c.picture("phone-open")
}

// elements are the kinds of elements of a page, and their attributes but for values of its own scripts.
const elements = `[...new Set([...document.querySelectorAll("body *")].flatMap(e => [e.localName, ...e.getAttributeNames().map(a => e.localName + " " + a)]))].sort()`

// Hostile texts add no element and no attribute to a page, run nothing, ask for nothing, and break no
// layout: neither where the script builds the changes nor without scripts.
func TestInABrowserHostileTextsDoNothing(t *testing.T) {
	c := startChromium(t)
	c.size(1280, 900)
	ordinary := append(many(300), review()...)
	for i := range ordinary {
		ordinary[i] = warning(failing(ordinary[i], "reason"), "code", "text", "", 1)
		ordinary[i].Steps[0].Warnings, ordinary[i].Steps[0].NotIdempotent = []engine.Warning{"warning"}, "random"
	}
	options := reviewOptions
	options.Context = harmfulContext
	options.Hint = next(markup)
	title := fmt.Sprintf("Mutation preview: %[1]d of %[1]d objects would change", len(hostile.Texts()))
	for _, scripts := range []bool{true, false} {
		var known []any
		for _, changes := range [][]engine.Change{ordinary, harmful()} {
			c.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": !scripts}, nil)
			c.open(c.save(pageOf(t, options, changes, errors.New(markup))))
			if scripts {
				c.until(ready)
				for c.run(`document.querySelector("#more").hidden`) == false {
					c.click("#more")
				}
				c.run(`scrollTo(0, 0)`)
				c.click("#open")
				c.until(`document.querySelectorAll("#list .body").length === document.querySelectorAll("#list li > details").length`)
			} else {
				c.run(`document.querySelectorAll("details").forEach(e => e.open = true)`)
			}
			found, _ := c.run(elements).([]any)
			if known == nil {
				known = found
				continue
			}
			for _, element := range found {
				if !slices.Contains(known, element) {
					t.Errorf("scripts %v: the page has a new %v", scripts, element)
				}
			}
			c.expect("the title", title, "document.title")
			c.expect("the width", true, `document.documentElement.scrollWidth <= 1280`)
			c.expect("what stands beyond its change", 0.0, `[...document.querySelectorAll("#list > li")].filter(li => { const r = li.getBoundingClientRect();
				return [...li.querySelectorAll("h3, p, li, code, .values")].some(e => e.getClientRects().length > 0 && !e.closest(".diff") && (e.getBoundingClientRect().right > r.right + 1 || e.getBoundingClientRect().left < r.left - 1)); }).length`)
			c.run(`document.querySelector("#list").scrollIntoView()`)
			c.picture(fmt.Sprint("hostile-", scripts))
		}
		c.quiet()
	}
}

// A script that got into the page would not run, and nothing could be loaded.
func TestInABrowserTheContentPolicyHolds(t *testing.T) {
	c := startChromium(t)
	c.show(reviewOptions, review())
	refused := func(statement string) string {
		return `(() => { try { ` + statement + ` } catch (e) { return e.name; } })()`
	}
	c.expect("a handler made of text is refused", "TypeError", refused(`document.body.setAttribute("onclick", "document.title = 'run'")`))
	c.expect("so is a script", "TypeError", refused(`const s = document.createElement("script"); s.textContent = "document.title = 'run'"; document.body.append(s)`))
	c.expect("so is markup", "TypeError", refused(`document.body.innerHTML = "<p>"`))
	c.expect("so is a request", "TypeError", `fetch("data:text/plain,x").then(() => "loaded", e => e.name)`)
	c.expect("the title", "Mutation preview: 18 of 19 objects would change", "document.title")
}

func TestInABrowserWithoutScriptsThePageCanBeRead(t *testing.T) {
	c := startChromium(t)
	c.size(1280, 900)
	c.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	c.open(c.save(pageOf(t, reviewOptions, review())))
	c.click("#list li:nth-child(4) summary")
	c.until(`document.querySelector("#list li:nth-child(4) details").open`)
	c.expect("the diff is there", true, `document.querySelector("#list li:nth-child(4) .diff").innerText.includes("+    echo two")`)
	c.expect("the controls are not", true, `document.querySelector("#filters").getClientRects().length === 0`)
	c.picture("without-scripts")
	c.quiet()
}
