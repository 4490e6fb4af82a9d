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

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
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
	Krews []struct {
		Name             string `json:"name"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"short_description"`
		Description      string `json:"description"`
	} `json:"krews"`
	SBOMs []struct {
		Artifacts string `json:"artifacts"`
	} `json:"sboms"`
	Dockers []struct {
		Images    []string `json:"images"`
		Tags      []string `json:"tags"`
		Platforms []string `json:"platforms"`
		SBOM      bool     `json:"sbom"`
	} `json:"dockers_v2"`
	DockerSigns []struct {
		Cmd       string   `json:"cmd"`
		Artifacts string   `json:"artifacts"`
		Args      []string `json:"args"`
	} `json:"docker_signs"`
	Signs []struct {
		Cmd       string   `json:"cmd"`
		Artifacts string   `json:"artifacts"`
		Signature string   `json:"signature"`
		Args      []string `json:"args"`
	} `json:"signs"`
	Release struct {
		ExtraFiles []struct {
			Glob string `json:"glob"`
		} `json:"extra_files"`
	} `json:"release"`
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

// The manifest of a release, for the index of the project's own, is written by
// goreleaser; it has the same content as the one in this directory.
func TestIndexMatches(t *testing.T) {
	m, r := read[manifest](t, file), read[release](t, "../.goreleaser.yaml")
	if len(r.Krews) != 1 || len(r.Release.ExtraFiles) != 1 {
		t.Fatalf("%d manifests are written and %d released, want one", len(r.Krews), len(r.Release.ExtraFiles))
	}
	k := r.Krews[0]
	check(t, k.Name == m.Metadata.Name, "name is %q there", k.Name)
	check(t, k.Homepage == m.Spec.Homepage, "homepage is %q there", k.Homepage)
	check(t, k.ShortDescription == m.Spec.ShortDescription, "shortDescription is %q there", k.ShortDescription)
	check(t, k.Description == m.Spec.Description, "description is %q there", k.Description)
	// goreleaser writes it to dist/krew, under the plugin's name.
	check(t, r.Release.ExtraFiles[0].Glob == "./dist/krew/"+file, "the release takes %s", r.Release.ExtraFiles[0].Glob)
}

func TestReleaseIsSignedAndListsItsParts(t *testing.T) {
	r := read[release](t, "../.goreleaser.yaml")
	if len(r.Signs) != 1 || len(r.SBOMs) != 1 {
		t.Fatalf("%d signatures and %d lists of parts, want one of each", len(r.Signs), len(r.SBOMs))
	}
	check(t, r.SBOMs[0].Artifacts == "archive", "parts are listed of %s", r.SBOMs[0].Artifacts)
	check(t, r.Signs[0].Artifacts == "checksum", "%s is signed", r.Signs[0].Artifacts)
	check(t, slices.Contains(r.Signs[0].Args, "--bundle=${signature}"), "no bundle is written: %v", r.Signs[0].Args)
	check(t, r.Signs[0].Cmd == "cosign" && slices.Contains(r.Signs[0].Args, "sign-blob"), "%s %v signs", r.Signs[0].Cmd, r.Signs[0].Args)
	job := read[workflow](t, "../.github/workflows/release.yml").Jobs["release"]
	check(t, job.Permissions["id-token"] == "write" && job.Permissions["attestations"] == "write", "the job that releases may only %v", job.Permissions)
	check(t, slices.ContainsFunc(job.Steps, func(s step) bool {
		return strings.HasPrefix(s.Uses, "actions/attest-build-provenance@") && s.With["subject-checksums"] == "dist/checksums.txt"
	}), "no step attests where what is in dist/checksums.txt comes from")
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"--bundle checksums.txt.sigstore.json", "'^https://github.com/kubectl-mutate/kubectl-mutate/'", "https://token.actions.githubusercontent.com checksums.txt", "--repo kubectl-mutate/kubectl-mutate"} {
		check(t, strings.Contains(string(text), word), "SECURITY.md does not verify with %s", word)
	}
}

// The image is what `kubectl mutate job` prints for a release, for all Linux platforms, with its parts listed and signed; it holds
// the program on a base without a shell.
func TestImageIsTheOneThatJobsRun(t *testing.T) {
	r := read[release](t, "../.goreleaser.yaml")
	if len(r.Dockers) != 1 || len(r.DockerSigns) != 1 {
		t.Fatalf("%d images are built and %d signed, want one", len(r.Dockers), len(r.DockerSigns))
	}
	image, sign := r.Dockers[0], r.DockerSigns[0]
	check(t, slices.Equal(image.Images, []string{process.Repository}) && slices.Equal(image.Tags, []string{"{{ .Version }}"}), "the image is %v:%v, and jobs run %s:VERSION", image.Images, image.Tags, process.Repository)
	for _, arch := range r.Builds[0].Goarch {
		check(t, slices.Contains(image.Platforms, "linux/"+arch), "there is no image for linux/%s: %v", arch, image.Platforms)
	}
	check(t, image.SBOM, "the parts of the image are not listed")
	check(t, sign.Cmd == "cosign" && sign.Artifacts == "all" && slices.Equal(sign.Args, []string{"sign", "--yes", "${artifact}@${digest}"}), "%s %v signs %s", sign.Cmd, sign.Args, sign.Artifacts)
	check(t, read[workflow](t, "../.github/workflows/release.yml").Jobs["release"].Permissions["packages"] == "write", "the job that releases may not push the image")
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	base := regexp.MustCompile(`(?m)^FROM (.*)$`).FindAllStringSubmatch(string(text), -1)
	check(t, len(base) == 1 && strings.Contains(base[0][1], "/distroless/static-") && strings.HasSuffix(base[0][1], ":nonroot"), "the base is %v", base)
	copied := regexp.MustCompile(`(?m)^(COPY|ADD|RUN) .*$`).FindAllString(string(text), -1)
	check(t, slices.Equal(copied, []string{"COPY ${TARGETPLATFORM}/kubectl-mutate /kubectl-mutate"}), "the image is made by %v", copied)
}

// workflow is what matters of a GitHub workflow here.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `json:"permissions"`
		Steps       []step            `json:"steps"`
	} `json:"jobs"`
}

type step struct {
	Uses string         `json:"uses"`
	With map[string]any `json:"with"`
}

// Only the job that releases may write, and no action is of a moving branch.
func TestWorkflowsHaveNoMoreRightsThanTheyNeed(t *testing.T) {
	for _, name := range []string{"release.yml", "krew-index.yml", "ci.yml"} {
		w := read[workflow](t, "../.github/workflows/"+name)
		check(t, w.Permissions != nil, "%s leaves permissions to the repository's settings", name)
		for _, access := range w.Permissions {
			check(t, access == "read", "%s gives all jobs %s", name, access)
		}
		for job, j := range w.Jobs {
			for what, access := range j.Permissions {
				check(t, access == "read" || (name == "release.yml" && job == "release"), "job %s of %s may %s %s", job, name, access, what)
			}
			for _, step := range j.Steps {
				if step.Uses != "" {
					check(t, regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}$`).MatchString(step.Uses), "%s uses %s: name it by its commit", name, step.Uses)
				}
			}
		}
	}
}

// The linker ignores -X for a variable that is not there, so a renamed one
// would go unnoticed.
func TestLinkerSetsVariablesThatExist(t *testing.T) {
	variables := packageVariables(t, "../pkg/plugin/process")
	build := read[release](t, "../.goreleaser.yaml").Builds[0]
	check(t, slices.Contains(build.Flags, "-trimpath"), "flags %v make no reproducible build", build.Flags)
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`(?m)^PKG +:= (.+)$`).FindSubmatch(makefile)
	if name == nil {
		t.Fatal("the Makefile names no package for -X")
	}
	flag := regexp.MustCompile(`-X github\.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process\.(\w+)=`)
	for from, ldflags := range map[string]string{
		".goreleaser.yaml": strings.Join(build.Ldflags, " "),
		"Makefile":         strings.ReplaceAll(string(makefile), "$(PKG)", string(name[1])),
	} {
		set := flag.FindAllStringSubmatch(ldflags, -1)
		check(t, len(set) == 2, "%s sets %d variables, want version and commit", from, len(set))
		for _, match := range set {
			check(t, slices.Contains(variables, match[1]), "%s: pkg/plugin/process has no variable %s", from, match[1])
		}
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
