// Package krew holds the plugin's manifest, and the test of its rules.
package krew

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"
)

const file = "mutate.yaml"

type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string     `json:"version"`
		Homepage         string     `json:"homepage"`
		ShortDescription string     `json:"shortDescription"`
		Description      string     `json:"description"`
		Platforms        []platform `json:"platforms"`
	} `json:"spec"`
}

type platform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	Sha256 string `json:"sha256"`
	Bin    string `json:"bin"`
	Files  []struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"files"`
}

// release is the part of .goreleaser.yaml that the manifest must agree with.
type release struct {
	ProjectName string `json:"project_name"`
	Builds      []struct {
		Binary  string   `json:"binary"`
		Flags   []string `json:"flags"`
		Ldflags []string `json:"ldflags"`
		Goos    []string `json:"goos"`
		Goarch  []string `json:"goarch"`
	} `json:"builds"`
	Archives []struct {
		NameTemplate string `json:"name_template"`
		Files        []struct {
			Src string `json:"src"`
		} `json:"files"`
	} `json:"archives"`
}

// The rules of krew's own validation and of the reviewers of its index.
func TestManifestIsWhatKrewAccepts(t *testing.T) {
	m := read[manifest](t, file)
	check(t, m.APIVersion == "krew.googlecontainertools.github.com/v1alpha2", "apiVersion is %q", m.APIVersion)
	check(t, m.Kind == "Plugin", "kind is %q", m.Kind)
	check(t, m.Metadata.Name+".yaml" == file, "the plugin %q must stand in a file of its name, not in %s", m.Metadata.Name, file)
	check(t, regexp.MustCompile(`^[\w-]+$`).MatchString(m.Metadata.Name), "name %q", m.Metadata.Name)
	check(t, strings.HasPrefix(m.Spec.Version, "v"), "version %q does not start with v", m.Spec.Version)
	if _, err := semver.Parse(strings.TrimPrefix(m.Spec.Version, "v")); err != nil {
		t.Errorf("version %q: %v", m.Spec.Version, err)
	}
	check(t, strings.HasPrefix(m.Spec.Homepage, "https://"), "homepage is %q", m.Spec.Homepage)
	short := m.Spec.ShortDescription
	check(t, short != "" && len(short) <= 50 && !strings.Contains(short, "\n"), "shortDescription must be one line of at most 50 characters: %q", short)
	for _, line := range strings.Split(m.Spec.Description, "\n") {
		check(t, len(line) <= 80, "description is not wrapped at 80 characters: %q", line)
	}
	check(t, len(m.Spec.Platforms) > 0, "no platforms")
	for _, p := range m.Spec.Platforms {
		t.Run(p.name(), p.check)
	}
}

func (p platform) name() string {
	return p.Selector.MatchLabels["os"] + "/" + p.Selector.MatchLabels["arch"]
}

func (p platform) check(t *testing.T) {
	supported := []string{
		"windows/386", "windows/amd64", "windows/arm64", "darwin/386", "darwin/amd64", "darwin/arm64",
		"linux/386", "linux/amd64", "linux/arm", "linux/arm64", "linux/ppc64le",
	}
	check(t, slices.Contains(supported, p.name()), "krew has no platform %q", p.name())
	check(t, len(p.Selector.MatchLabels) == 2, "a selector is by os and arch alone: %v", p.Selector.MatchLabels)
	check(t, strings.HasSuffix(p.URI, ".zip") || strings.HasSuffix(p.URI, ".tar.gz"), "krew cannot unpack %s", p.URI)
	check(t, regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(p.Sha256), "sha256 is %q", p.Sha256)
	var files []string
	for _, f := range p.Files {
		files = append(files, f.From)
		check(t, f.To == ".", "%s goes to %q", f.From, f.To)
	}
	check(t, p.Bin != "" && slices.Contains(files, p.Bin), "bin %q is not among the files %v", p.Bin, files)
	check(t, slices.Contains(files, "LICENSE"), "LICENSE is not among the files %v", files)
}

func TestManifestNamesTheArchivesOfARelease(t *testing.T) {
	m, r := read[manifest](t, file), read[release](t, "../.goreleaser.yaml")
	build, archive := r.Builds[0], r.Archives[0]
	const template = "{{ .ProjectName }}_{{ .Version }}_{{ .Os }}_{{ .Arch }}"
	check(t, archive.NameTemplate == template, "archives are named %q, which this test does not know", archive.NameTemplate)

	var released, offered []string
	for _, goos := range build.Goos {
		for _, goarch := range build.Goarch {
			released = append(released, goos+"/"+goarch)
		}
	}
	for _, p := range m.Spec.Platforms {
		offered = append(offered, p.name())
		extension, exe := ".tar.gz", ""
		if strings.HasPrefix(p.name(), "windows/") {
			extension, exe = ".zip", ".exe"
		}
		want := fmt.Sprintf("%s/releases/download/%s/%s_%s_%s%s", m.Spec.Homepage, m.Spec.Version, r.ProjectName,
			strings.TrimPrefix(m.Spec.Version, "v"), strings.ReplaceAll(p.name(), "/", "_"), extension)
		check(t, p.URI == want, "uri is\n%s, want\n%s", p.URI, want)
		check(t, p.Bin == build.Binary+exe, "bin is %q, want %q", p.Bin, build.Binary+exe)
	}
	check(t, slices.Equal(released, offered), "released are %v, the manifest offers %v", released, offered)

	var packed []string
	for _, f := range archive.Files {
		packed = append(packed, f.Src)
	}
	for _, name := range packed {
		_, err := os.Stat("../" + name)
		check(t, err == nil, "an archive needs %s: %v", name, err)
	}
	check(t, slices.Contains(packed, "LICENSE"), "archives hold %v, no LICENSE", packed)
}

// The linker ignores -X for a variable that is not there, so a renamed one
// would go unnoticed.
func TestLinkerSetsVariablesThatExist(t *testing.T) {
	variables := packageVariables(t, "../pkg/plugin")
	build := read[release](t, "../.goreleaser.yaml").Builds[0]
	check(t, slices.Contains(build.Flags, "-trimpath"), "flags %v make no reproducible build", build.Flags)
	flag := regexp.MustCompile(`-X github\.com/kubectl-mutate/kubectl-mutate/pkg/plugin\.(\w+)=`)
	set := flag.FindAllStringSubmatch(strings.Join(build.Ldflags, " "), -1)
	check(t, len(set) == 2, "ldflags set %d variables, want version and commit", len(set))
	for _, match := range set {
		check(t, slices.Contains(variables, match[1]), "pkg/plugin has no variable %s", match[1])
	}
}

func packageVariables(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), dir+"/"+entry.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range source.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok != token.VAR {
				continue
			}
			for _, spec := range general.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

func read[T any](t *testing.T, path string) T {
	t.Helper()
	var into T
	content, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(content, &into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return into
}

func check(t *testing.T, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}
