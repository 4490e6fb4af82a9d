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
	Release struct {
		ExtraFiles []struct {
			Glob string `json:"glob"`
		} `json:"extra_files"`
	} `json:"release"`
	Archives []struct {
		NameTemplate string   `json:"name_template"`
		BuildsInfo   fileInfo `json:"builds_info"`
		Files        []struct {
			Src  string   `json:"src"`
			Info fileInfo `json:"info"`
		} `json:"files"`
	} `json:"archives"`
}

// fileInfo is what an archive says of a file.
type fileInfo struct {
	Mode  int    `json:"mode"`
	Mtime string `json:"mtime"`
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

	// The same bytes of the same commit, under any umask.
	const committed = "{{ .CommitDate }}"
	check(t, archive.BuildsInfo == fileInfo{0o755, committed}, "the program has %v", archive.BuildsInfo)
	var packed []string
	for _, f := range archive.Files {
		packed = append(packed, f.Src)
		check(t, f.Info == fileInfo{0o644, committed}, "%s has %v", f.Src, f.Info)
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
	check(t, len(r.SBOMs) == 1 && r.SBOMs[0].Artifacts == "archive", "parts are listed of %v", r.SBOMs)
	job := read[workflow](t, "../.github/workflows/release.yml").Jobs["release"]
	check(t, job.Permissions["id-token"] == "write" && job.Permissions["attestations"] == "write", "the job that releases may only %v", job.Permissions)
	sign := slices.IndexFunc(job.Steps, func(s step) bool { return strings.Contains(s.Run, "cosign sign-blob") })
	attest := slices.IndexFunc(job.Steps, func(s step) bool {
		return strings.HasPrefix(s.Uses, "actions/attest-build-provenance@") && s.With["subject-checksums"] == "dist/checksums.txt"
	})
	if sign < 0 || attest < sign {
		t.Fatalf("step %d signs, step %d attests where what is in dist/checksums.txt comes from", sign, attest)
	}
	for _, word := range []string{"sha256sum mutate.yaml) >> dist/checksums.txt\n", "--bundle=dist/checksums.txt.sigstore.json dist/checksums.txt\n", "gh release upload"} {
		check(t, strings.Contains(job.Steps[sign].Run, word), "the step that signs does not run %q", word)
	}
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"--bundle checksums.txt.sigstore.json", "'^https://github.com/kubectl-mutate/kubectl-mutate/'", "https://token.actions.githubusercontent.com checksums.txt", "--repo kubectl-mutate/kubectl-mutate"} {
		check(t, strings.Contains(string(text), word), "SECURITY.md does not verify with %s", word)
	}
}

// The image is what `kubectl mutate job` prints for a release, for all Linux platforms, made after the release was reviewed of
// its signed programs, with its parts listed and signed; it holds the program on a base without a shell.
func TestImageIsTheOneThatJobsRun(t *testing.T) {
	w := read[workflow](t, "../.github/workflows/publish.yml")
	check(t, slices.Equal(w.On.Release.Types, []string{"published"}), "it is made when a release is %v", w.On.Release.Types)
	job := w.Jobs["image"]
	check(t, job.Permissions["packages"] == "write" && job.Permissions["id-token"] == "write", "the job that makes it may only %v", job.Permissions)
	push := job.Steps[len(job.Steps)-1]
	check(t, push.Env["IMAGE"] == process.Repository, "it is %s, and jobs run %s", push.Env["IMAGE"], process.Repository)
	for _, arch := range read[release](t, "../.goreleaser.yaml").Builds[0].Goarch {
		check(t, strings.Contains(push.Run, "linux/"+arch) && strings.Contains(push.Run, arch+" "), "there is no image for linux/%s", arch)
	}
	at := 0
	for _, word := range []string{"cosign verify-blob", "sha256sum --check", "docker buildx build --push", `--tag "$IMAGE:${TAG#v}"`, "--sbom=true", `cosign sign --yes "$IMAGE@$(`} {
		i := strings.Index(push.Run[at:], word)
		check(t, i >= 0, "it does not go on with %s", word)
		at += max(i, 0)
	}
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
	On struct {
		Release struct {
			Types []string `json:"types"`
		} `json:"release"`
	} `json:"true"` // `on` is a boolean of YAML 1.1
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `json:"permissions"`
		Steps       []step            `json:"steps"`
	} `json:"jobs"`
}

type step struct {
	Uses string            `json:"uses"`
	With map[string]any    `json:"with"`
	Run  string            `json:"run"`
	Env  map[string]string `json:"env"`
}

// Only the jobs that release may write, and no action is of a moving branch.
func TestWorkflowsHaveNoMoreRightsThanTheyNeed(t *testing.T) {
	for _, name := range []string{"release.yml", "publish.yml", "ci.yml", "nightly.yml"} {
		w := read[workflow](t, "../.github/workflows/"+name)
		check(t, w.Permissions != nil, "%s leaves permissions to the repository's settings", name)
		for _, access := range w.Permissions {
			check(t, access == "read", "%s gives all jobs %s", name, access)
		}
		for job, j := range w.Jobs {
			for what, access := range j.Permissions {
				check(t, access == "read" || (name == "release.yml" && job == "release") || (name == "publish.yml" && job == "image"), "job %s of %s may %s %s", job, name, access, what)
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
