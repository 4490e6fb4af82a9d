package jmespath_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

var functionsNow = time.Date(2024, 2, 29, 13, 14, 15, 0, time.FixedZone("", 2*60*60))

func functionsSearch(t testing.TB, expr string, data any) (any, error) {
	t.Helper()
	compiled, err := jmespath.Compile(expr)
	if err != nil {
		t.Fatalf("Compile(%s): %v", expr, err)
	}
	return compiled.Search(jmespath.New(functionsNow, 1), data)
}

func TestFunctions(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/functions.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range archive.Files {
		for line := range strings.Lines(string(section.Data)) {
			expr, want, _ := strings.Cut(strings.TrimSpace(line), " => ")
			t.Run(section.Name+"/"+expr, func(t *testing.T) { testFunction(t, expr, want) })
		}
	}
}

func testFunction(t *testing.T, expr, want string) {
	got, err := functionsSearch(t, expr, nil)
	if reason, fails := strings.CutPrefix(want, "error: "); fails {
		var failed *jmespath.CallError
		if !errors.As(err, &failed) || !strings.Contains(failed.Err.Error(), reason) {
			t.Errorf("got %v, %v, want a CallError: %s", got, err, reason)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := utiljson.Unmarshal([]byte(want), &value); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(value, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFunctionErrors(t *testing.T) {
	_, err := functionsSearch(t, "to_upper(`1`)", nil)
	if want := "JMESPath function 'to_upper': argument #1 is not of type String"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = functionsSearch(t, "is_external_url('https://example.com')", nil)
	var unsupported *jmespath.UnsupportedError
	if !errors.As(err, &unsupported) {
		t.Errorf("got %v, want an UnsupportedError", err)
	}
}

func TestRandomBySeed(t *testing.T) {
	compiled, err := jmespath.Compile("[random('[a-z]{20}'), random('[a-z]{20}')]")
	if err != nil {
		t.Fatal(err)
	}
	draw := func(in *jmespath.Interpreter) []any {
		drawn, err := compiled.Search(in, map[string]any{})
		if err != nil {
			t.Fatal(err)
		}
		return drawn.([]any)
	}
	in := jmespath.New(functionsNow, 1)
	first, next := draw(in), draw(in)
	for _, text := range first {
		if !regexp.MustCompile("^[a-z]{20}$").MatchString(text.(string)) {
			t.Errorf("%v does not match the pattern", text)
		}
	}
	if first[0] == first[1] || first[0] == next[0] {
		t.Errorf("texts repeat: %v, then %v", first, next)
	}
	if diff := cmp.Diff(first, draw(jmespath.New(functionsNow, 1))); diff != "" {
		t.Errorf("one seed gives two series:\n%s", diff)
	}
	if other := draw(jmespath.New(functionsNow, 2)); first[0] == other[0] {
		t.Errorf("two seeds give %v", first)
	}
}

func TestX509Decode(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "web"}, NotAfter: functionsNow.Add(time.Hour), DNSNames: []string{"web.shop.svc"},
	}
	decodePEM := func(kind string, der []byte, expr string) (any, error) {
		return functionsSearch(t, expr, map[string]any{"pem": string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))})
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, rsaKey.Public(), rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodePEM("CERTIFICATE", der, "x509_decode(pem).[Subject.CommonName, DNSNames[0], PublicKey.N, PublicKey.E]")
	want := []any{"web", "web.shop.svc", rsaKey.N.String(), int64(rsaKey.E)}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("certificate: %v\n%s", err, diff)
	}
	der, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "req"}}, rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodePEM("CERTIFICATE REQUEST", der, "x509_decode(pem).Subject.CommonName"); err != nil || got != "req" {
		t.Errorf("request: %v, %v", got, err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err = x509.CreateCertificate(rand.Reader, template, template, ecKey.Public(), ecKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodePEM("CERTIFICATE", der, "x509_decode(pem)"); err == nil {
		t.Error("a certificate without an RSA key decodes")
	}
	if _, err := decodePEM("PRIVATE KEY", der, "x509_decode(pem)"); err == nil {
		t.Error("a private key decodes")
	}
}
