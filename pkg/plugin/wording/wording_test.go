package wording_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

func TestCountsSayWhatWentOtherwise(t *testing.T) {
	summary := func(objects, changed int) evaluation.Summary {
		return evaluation.Summary{Objects: objects, Changed: changed, Fields: 2 * changed}
	}
	bad := summary(3, 1)
	bad.Incomplete, bad.Warnings = 2, 1
	bad.Rules = []evaluation.RuleSummary{{Outcomes: map[engine.Outcome]int{engine.Failed: 2, engine.Changed: 1}}}
	for _, c := range []struct {
		summary evaluation.Summary
		want    string
	}{
		{summary(0, 0), "No objects evaluated."},
		{evaluation.Summary{Incomplete: 1}, "No objects evaluated. 1 object incomplete."},
		{summary(1, 0), "1 object evaluated: 0 would change, 1 would not."},
		{summary(2, 2), "2 objects evaluated: 2 would change (4 fields), 0 would not."},
		{bad, "3 objects evaluated: 1 would change (2 fields), 2 would not. 2 objects incomplete, 2 rule results failed, 1 warning."},
	} {
		if got := wording.Counts(c.summary); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 10050: "10,050", 1234567: "1,234,567"} {
		if got := wording.Number(n); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for n, want := range map[int]string{1: "1 policy", 2000: "2,000 policies"} {
		if got := wording.PluralNumber(n, "policy"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A conclusion counts as the same only what was found to be.
func TestConclusionOfWhatIsTheSame(t *testing.T) {
	idle := compare.Exercise{}
	busy := compare.Exercise{Outcomes: map[engine.Outcome]int{engine.Changed: 1}}
	for want, s := range map[string]compare.Summary{
		"SAME: both policy sets do the same to 2 objects, and each rule was exercised.":                                                          {Conclusion: compare.AllSame, Counts: compare.Counts{Objects: 2}, Rules: [2][]compare.Exercise{{busy}, {busy}}},
		"SAME AS FAR AS TESTED: both policy sets do the same to 2 objects and 5 variants; it is unknown for 3 variants.":                         {Conclusion: compare.SameAsTested, Counts: compare.Counts{Objects: 2}, Variants: compare.VariantSummary{Compared: 8, Unknown: 3}, Rules: [2][]compare.Exercise{{busy}, {busy}}},
		"SAME AS FAR AS TESTED: both policy sets do the same to 1 object; it is unknown for 1 variant, and not each derived rule was exercised.": {Conclusion: compare.SameAsTested, Counts: compare.Counts{Objects: 1}, Variants: compare.VariantSummary{Compared: 1, Unknown: 1}, Rules: [2][]compare.Exercise{{busy}, {idle}}},
		"SAME AS FAR AS TESTED: both policy sets do the same to 8 variants, but not each derived rule was exercised.":                            {Conclusion: compare.SameAsTested, Variants: compare.VariantSummary{Compared: 8}, Rules: [2][]compare.Exercise{{busy}, {idle}}},
		"NOT EXERCISED: no rule changed any of 8 variants.":                                                                                      {Conclusion: compare.NotExercised, Variants: compare.VariantSummary{Compared: 8, Unknown: 8}, Rules: [2][]compare.Exercise{{idle}, {idle}}},
	} {
		if got := wording.Conclusion(&s); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestRequested(t *testing.T) {
	for want, v := range map[string]compare.Variant{
		"":                                      {},
		", requested by alice":                  {Request: engine.Request{User: engine.UserInfo{Username: "alice"}}},
		", requested by alice of admins, users": {Request: engine.Request{User: engine.UserInfo{Username: "alice", Groups: []string{"admins", "users"}}}},
		", requested by a user of admins, in a dry run": {Request: engine.Request{User: engine.UserInfo{Groups: []string{"admins"}}, DryRun: true}},
		", without ConfigMap shop/a, ConfigMap shop/b":  {Missing: []string{"ConfigMap shop/a", "ConfigMap shop/b"}},
	} {
		if got := wording.Requested(&v); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"deployment/web": "deployment/web", "app=web,tier=db": "app=web,tier=db", "=ls": "'=ls'",
		"": "''", "a b": "'a b'", "$(reboot)": "'$(reboot)'", "it's": `'it'\''s'`, "!db": "'!db'", "Grüße": "'Grüße'",
		"a\n!%b": `"$(printf 'a\012\041\045b')"`, "\x1b[2J": `"$(printf '\033\1332J')"`, "##[x": `"$(printf '\043\043\133x')"`,
	} {
		if got := wording.ShellQuote(word); got != want {
			t.Errorf("Quote(%q) = %s, want %s", word, got, want)
		}
	}
}

// Whatever a word is, a shell gets it as it is when it is pasted from where it was shown, and
// does nothing else.
func TestQuotedWordsArePasted(t *testing.T) {
	var lines, want strings.Builder
	for _, text := range hostile.Texts() {
		if strings.Contains(text.Text, "\x00") {
			continue // which no word of a command holds
		}
		quoted := wording.ShellQuote(text.Text)
		if shown := redact.EscapeLine(quoted); shown != quoted {
			t.Errorf("%q is shown as %s", quoted, shown)
		}
		fmt.Fprintf(&lines, "show %s x%s\n", quoted, wording.ShellQuote(text.Text+"x"))
		want.WriteString(hostile.Shown(strings.TrimRight(text.Text, "\n"), "x"+text.Text+"x"))
	}
	for shell, got := range hostile.Paste(t, lines.String()) {
		if got != want.String() {
			a, b := strings.Split(want.String(), "\n"), strings.Split(got, "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Fatalf("%s got %.80q, want %.80q", shell, b[i], a[i])
				}
			}
			t.Errorf("%s got %d lines, want %d", shell, len(b), len(a))
		}
	}
}

func deploymentKey(namespace, name string) engine.ObjectKey {
	return engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: namespace, Name: name}
}

func TestWithoutName(t *testing.T) {
	for text, want := range map[string]string{
		`deployments.apps "web" is forbidden: quota`:                    `deployments.apps "..." is forbidden: quota`,
		"image of shop/web is not signed":                               "image of ... is not signed",
		"Deployment web and deployment/web, 'web'":                      "Deployment ... and deployment/..., '...'",
		"spec.web: Invalid value":                                       "spec.web: Invalid value", // another web
		"shop/web-2 and myshop/web":                                     "shop/web-2 and myshop/...",
		`validation of "shop/web" failed`:                               `validation of "..." failed`,
		"GET /apis/apps/v1/namespaces/shop/deployments/web: 404, /webs": "GET /apis/apps/v1/namespaces/.../deployments/...: 404, /webs",
		"nothing is said of the object":                                 "nothing is said of the object",
		`denied: "web" "web-1" shop/web shop/web-1 web`:                 `denied: "..." "web-1" ... .../web-1 web`,
		`get configmap shop/settings: not in namespace shop, "shop"`:    `get configmap .../settings: not in namespace ..., "..."`,
		"shop/settings of workshop/a, namespace shop-2":                 "shop/settings of workshop/a, namespace shop-2",
	} {
		if got := wording.WithoutName(text, deploymentKey("shop", "web")); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := wording.WithoutName("text", engine.ObjectKey{}); got != "text" {
		t.Errorf("got %q", got)
	}
}
