package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What makes a connection, by import path.
var connecting = map[string][]string{
	"net/http":   {"Client", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "Transport"},
	"net":        {"Dial", "DialIP", "DialTCP", "DialTimeout", "DialUDP", "DialUnix", "Dialer", "Resolver"},
	"crypto/tls": {"Client", "Dial", "DialWithDialer", "Dialer"},
	"net/rpc":    {"Dial", "DialHTTP", "DialHTTPPath"},
	"net/smtp":   {"Dial", "SendMail"},
}

// What takes connections, by import path.
var listening = map[string][]string{
	"net":        {"FileListener", "FilePacketConn", "Listen", "ListenConfig", "ListenIP", "ListenMulticastUDP", "ListenPacket", "ListenTCP", "ListenUDP", "ListenUnix", "ListenUnixgram"},
	"net/http":   {"ListenAndServe", "ListenAndServeTLS", "Serve", "ServeTLS", "Server"},
	"crypto/tls": {"Listen", "NewListener"},
}

// TestOneServer keeps what takes connections in package metrics, which serves nothing else.
func TestOneServer(t *testing.T) {
	const server = module + "/pkg/plugin/metrics"
	found := false
	for _, p := range sources(t, "./cmd/...", "./internal/...", "./pkg/...") {
		for _, use := range p.uses(t, listening) {
			if found = found || p.ImportPath == server; p.ImportPath != server {
				t.Errorf("%s: only package metrics takes connections", use)
			}
		}
	}
	if !found {
		t.Error("nothing was found in package metrics")
	}
}

// TestOneTransport keeps every connection below package transport.
func TestOneTransport(t *testing.T) {
	found := map[string]bool{}
	for _, p := range sources(t, "./cmd/...", "./internal/...", "./pkg/...") {
		for _, use := range p.uses(t, connecting) {
			found[p.ImportPath] = true
			if p.ImportPath != module+"/pkg/plugin/transport" {
				t.Errorf("%s: only package transport makes connections", use)
			}
		}
	}
	if !found[module+"/pkg/plugin/transport"] {
		t.Error("nothing was found in package transport")
	}
}

// libraryClients are the libraries in the program that may send requests of their own, and why none
// leaves past package transport. All but those of client-go and go-containerregistry use
// http.DefaultTransport, which transport.GuardDefault closes.
var libraryClients = map[string]string{
	"github.com/go-openapi/swag/loading":                             "reads remote references of OpenAPI documents, which nothing asks for",
	"github.com/google/gnostic-models/compiler":                      "reads remote references of OpenAPI documents, which nothing asks for",
	"github.com/google/go-containerregistry/pkg/v1/remote":           "is given a transport",
	"github.com/google/go-containerregistry/pkg/v1/remote/transport": "is given a transport",
	"golang.org/x/oauth2":                                            "is given a client",
	"golang.org/x/oauth2/internal":                                   "is given a client",
	"k8s.io/apimachinery/pkg/util/net":                               "settings of transports",
	"k8s.io/cli-runtime/pkg/resource":                                "reads URLs of -f, for which package input takes its place",
	"k8s.io/client-go/plugin/pkg/client/auth/oidc":                   "asks the identity provider of a kubeconfig: transport.AllowLogins",
	"k8s.io/client-go/rest":                                          "its configs go through cluster.Wrap",
	"k8s.io/client-go/third_party/forked/httpcache":                  "its configs go through cluster.Wrap",
	"k8s.io/client-go/transport":                                     "its configs go through cluster.Wrap",
	"sigs.k8s.io/kustomize/api/internal/loader":                      "http.DefaultTransport; package input refuses repositories",
}

// A library that begins to send requests is to be looked at.
func TestClientsOfLibraries(t *testing.T) {
	clients := map[string][]string{"net/http": connecting["net/http"]}
	found := map[string]bool{}
	for _, p := range sources(t, "-deps", "./cmd/kubectl-mutate") {
		if p.Standard || strings.HasPrefix(p.ImportPath, module) {
			continue
		}
		for _, use := range p.uses(t, clients) {
			if found[p.ImportPath] = true; libraryClients[p.ImportPath] == "" {
				t.Errorf("%s: can it send a request past package transport?", use)
			}
		}
	}
	for p := range libraryClients {
		if !found[p] {
			t.Errorf("%s sends no requests any more", p)
		}
	}
}

type source struct {
	ImportPath, Dir string
	Standard        bool
	Files           []string
}

// sources lists the packages that go list finds for arguments.
func sources(t *testing.T, args ...string) []source {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-f", `{{.ImportPath}}|{{.Dir}}|{{.Standard}}|{{join .GoFiles "|"}}`}, args...)...)
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []source
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		all = append(all, source{ImportPath: fields[0], Dir: fields[1], Standard: fields[2] == "true", Files: fields[3:]})
	}
	return all
}

// uses are the places that name something of other packages, but for the types of parameters,
// results and fields behind a pointer, which are values that somebody else makes.
func (s source) uses(t *testing.T, names map[string][]string) []string {
	t.Helper()
	var out []string
	for _, name := range s.Files {
		if name == "" {
			continue
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, filepath.Join(s.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		local := map[string][]string{}
		for _, i := range f.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			as := p[strings.LastIndex(p, "/")+1:]
			if i.Name != nil {
				as = i.Name.Name
			}
			if names[p] != nil {
				local[as] = names[p]
			}
		}
		if local["."] != nil {
			t.Errorf("%s: %s imports what makes connections with a dot", s.ImportPath, name)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StarExpr:
				_, isName := n.X.(*ast.SelectorExpr)
				return !isName
			case *ast.SelectorExpr:
				of, _ := n.X.(*ast.Ident)
				if of != nil && slices.Contains(local[of.Name], n.Sel.Name) {
					out = append(out, fmt.Sprintf("%s: %s: %s.%s", s.ImportPath, files.Position(n.Pos()), of.Name, n.Sel.Name))
				}
			}
			return true
		})
	}
	return out
}
