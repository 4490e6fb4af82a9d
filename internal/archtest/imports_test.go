package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/kubectl-mutate/kubectl-mutate"

// A pattern is an import path, or a path and "/..." for it and all below it.
// What starts with "./" is in this module.
type rule struct {
	says      string
	packages  []string // to which the rule applies ...
	except    []string // ... but for these
	forbidden []string // what they must not import ...
	allowed   []string // ... but for these
}

// dialects are the policy languages: a new one is added here and in dialectRules.
var dialects = []string{"kyverno", "mutatingpolicy", "gatekeeper", "admissionpolicy"}

// commands are the packages of commands.
var commands = []string{
	"./pkg/plugin/apply", "./pkg/plugin/compare", "./pkg/plugin/convert", "./pkg/plugin/fix", "./pkg/plugin/policies", "./pkg/plugin/preview", "./pkg/plugin/test", "./pkg/plugin/undo",
}

var rules = append(dialectRules(), []rule{
	{
		says:      "the command knows the plugin and nothing else of this module",
		packages:  []string{"./cmd/..."},
		forbidden: []string{"./..."},
		allowed:   []string{"./pkg/plugin"},
	},
	{
		says:      "only the command imports the plugin's commands",
		packages:  []string{"./pkg/..."},
		forbidden: []string{"./pkg/plugin", "./cmd/..."},
	},
	{
		says:      "only the plugin's own packages import each other",
		packages:  []string{"./pkg/engine/..."},
		forbidden: []string{"./pkg/plugin/..."},
	},
	{
		says:      "only the commands, and what wires them, choose the dialects",
		packages:  []string{"./pkg/..."},
		except:    []string{"./pkg/plugin", "./pkg/plugin/factory"},
		forbidden: []string{"./pkg/engine/dialects"},
	},
	{
		says:      "the engine's vocabulary builds on selectors and limits alone",
		packages:  []string{"./pkg/engine"},
		forbidden: []string{"./..."},
		allowed:   []string{"./pkg/engine/limit", "./pkg/engine/selector"},
	},
	{
		says:      "the differ and schemas know the engine's vocabulary alone",
		packages:  []string{"./pkg/engine/diff", "./pkg/engine/openapi"},
		forbidden: []string{"./..."},
		allowed:   []string{"./pkg/engine", "./pkg/engine/limit", "./pkg/engine/openapi"},
	},
	{
		says:      "the bottom of the engine knows nothing of this module",
		packages:  []string{"./pkg/engine/limit", "./pkg/engine/selector"},
		forbidden: []string{"./..."},
	},
	{
		says:      "the engine does no I/O and knows no command line and no client",
		packages:  []string{"./pkg/engine/..."},
		forbidden: []string{"os", "os/...", "net/http", "github.com/spf13/...", "k8s.io/cli-runtime/...", "k8s.io/client-go/..."},
		allowed:   []string{"k8s.io/client-go/kubernetes/scheme"},
	},
	{
		says:      "planning a request does no I/O and knows nothing of the plugin",
		packages:  []string{"./pkg/plugin/write/request"},
		forbidden: []string{"os", "os/...", "net/http", "k8s.io/cli-runtime/...", "k8s.io/client-go/...", "./pkg/plugin/..."},
	},
	{
		says:      "the client knows nothing of what is done with it",
		packages:  []string{"./pkg/plugin/cluster"},
		forbidden: []string{"./pkg/plugin/..."},
		allowed:   []string{"./pkg/plugin/permission", "./pkg/plugin/redact", "./pkg/plugin/transport"},
	},
	{
		says:      "only the commands know the command line",
		packages:  []string{"./..."},
		except:    append([]string{"./pkg/plugin", "./pkg/plugin/process"}, commands...),
		forbidden: []string{"github.com/spf13/..."},
		allowed:   []string{"github.com/spf13/pflag"},
	},
	{
		says:      "one package says what users type",
		packages:  []string{"./..."},
		except:    append([]string{"./pkg/plugin", "./pkg/plugin/flags"}, commands...),
		forbidden: []string{"github.com/spf13/pflag"},
	},
	{
		says:      "what commands run knows neither flags nor how it was wired",
		packages:  []string{"./..."},
		except:    append([]string{"./pkg/plugin", "./pkg/plugin/factory"}, commands...),
		forbidden: []string{"./pkg/plugin/flags", "./pkg/plugin/factory"},
	},
	{
		says:     "only one package talks to an API server",
		packages: []string{"./..."},
		except:   []string{"./pkg/plugin/cluster/..."},
		forbidden: []string{
			"k8s.io/client-go/dynamic/...", "k8s.io/client-go/metadata/...", "k8s.io/client-go/discovery/...",
			"k8s.io/client-go/tools/pager", "k8s.io/client-go/restmapper", "k8s.io/cli-runtime/pkg/resource",
		},
	},
	{
		says:      "only one package knows the API server's own code, which changes with every release",
		packages:  []string{"./..."},
		except:    []string{"./pkg/engine/cel"},
		forbidden: []string{"k8s.io/apiserver/..."},
	},
	{
		says:      "what dialects share knows no dialect",
		packages:  []string{"./pkg/engine/cel/...", "./pkg/engine/policydecode", "./pkg/engine/selector"},
		forbidden: []string{"./..."},
		allowed:   []string{"./pkg/engine", "./pkg/engine/cel/...", "./pkg/engine/limit", "./pkg/engine/policydecode", "./pkg/engine/selector"},
	},
	{
		says:      "the way off an old policy can be retired: nothing else knows how to convert",
		packages:  []string{"./..."},
		except:    []string{"./pkg/engine/convert/...", "./pkg/plugin/convert", "./pkg/plugin"},
		forbidden: []string{"./pkg/engine/convert/...", "./pkg/plugin/convert"},
	},
	{
		says:     "the packages that double the binary stay out of it",
		packages: []string{"./..."},
		forbidden: []string{
			"k8s.io/client-go/kubernetes/...", "k8s.io/client-go/informers/...", "k8s.io/kubectl/pkg/cmd/util/...",
			"k8s.io/apiserver/pkg/admission/plugin/policy/matching", "k8s.io/apiserver/pkg/admission/plugin/policy/generic",
			"k8s.io/apiserver/pkg/admission/plugin/policy/mutating",
		},
		allowed: []string{"k8s.io/client-go/kubernetes/scheme"},
	},
}...)

// dialectRules let each dialect see the engine and what dialects share, and
// keep all others from seeing into a dialect, but for what converts one into another.
func dialectRules() []rule {
	var all []rule
	for _, name := range dialects {
		own := "./pkg/engine/" + name + "/..."
		all = append(all, rule{
			says:      "a dialect belongs to itself and to the list of dialects",
			packages:  []string{"./..."},
			except:    []string{own, "./pkg/engine/dialects", "./pkg/engine/convert/..."},
			forbidden: []string{own},
		})
	}
	return all
}

func TestImportRule(t *testing.T) {
	for _, dir := range []string{"../..", "../../test/e2e"} {
		packages := list(t, dir)
		if len(packages) == 0 {
			t.Fatalf("go list in %s found no packages", dir)
		}
		for _, p := range packages {
			for _, r := range rules {
				for _, imported := range p.Imports {
					if r.breaks(p.ImportPath, imported) {
						t.Errorf("%s imports %s: %s", p.ImportPath, imported, r.says)
					}
				}
			}
		}
	}
}

// The end-to-end tests use client-go as their own client, so the rules above
// look at what they import outside their test files only; this looks at those.
func TestEndToEndTestsUseTheBinary(t *testing.T) {
	r := rule{
		packages:  []string{"./test/e2e/..."},
		forbidden: []string{"./cmd/...", "./pkg/plugin", "k8s.io/kubernetes/...", "go.etcd.io/..."},
	}
	for _, p := range list(t, "../../test/e2e") {
		for _, imported := range append(append(p.Imports, p.TestImports...), p.XTestImports...) {
			if r.breaks(p.ImportPath, imported) {
				t.Errorf("%s imports %s: the end-to-end tests call the binary and the server", p.ImportPath, imported)
			}
		}
	}
}

func TestRuleNamesWhatItForbids(t *testing.T) {
	r := rule{
		packages: []string{"./pkg/..."}, except: []string{"./pkg/a/..."},
		forbidden: []string{"os/...", "./pkg/c"}, allowed: []string{"os/signal"},
	}
	for _, c := range []struct {
		importer, imported string
		want               bool
	}{
		{module + "/pkg/b", "os", true},
		{module + "/pkg/b", "os/exec", true},
		{module + "/pkg/b", "os/signal", false},
		{module + "/pkg/b", "ostrich", false},
		{module + "/pkg/b", module + "/pkg/c", true},
		{module + "/pkg/b", module + "/pkg/c/d", false},
		{module + "/pkg/a", "os", false},
		{module + "/pkg/a/x", "os", false},
		{module + "/cmd", "os", false},
	} {
		if got := r.breaks(c.importer, c.imported); got != c.want {
			t.Errorf("%s importing %s: breaks the rule = %t, want %t", c.importer, c.imported, got, c.want)
		}
	}
}

func (r rule) breaks(importer, imported string) bool {
	return matchAny(r.packages, importer) && !matchAny(r.except, importer) &&
		matchAny(r.forbidden, imported) && !matchAny(r.allowed, imported)
}

func matchAny(patterns []string, path string) bool {
	for _, pattern := range patterns {
		if strings.HasPrefix(pattern, "./") {
			pattern = module + strings.TrimPrefix(pattern, ".")
		}
		prefix, below := strings.CutSuffix(pattern, "/...")
		if path == prefix || (below && strings.HasPrefix(path, prefix+"/")) {
			return true
		}
	}
	return false
}

type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func list(t *testing.T, dir string) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v\n%s", dir, err, stderr.String())
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}
