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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// want of "error" stands for any error.
func TestFunctions(t *testing.T) {
	for _, c := range []struct{ expr, want string }{
		{"abs(`-3`)", "3"},
		{"abs(`-0.5`)", "0.5"},
		{"abs('x')", "error"},
		{"abs()", "error"},
		{"abs(`1`, `2`)", "error"},
		{"avg(`[1, 2]`)", "1.5"},
		{"avg(`[2, 4]`)", "3"},
		{"avg(`[]`)", "null"},
		{"avg(`[1, \"x\"]`)", "error"},
		{"ceil(`1.2`)", "2"},
		{"floor(`-1.2`)", "-2"},
		{"contains('abc', 'b')", "true"},
		{"contains('abc', `1`)", "false"},
		{"contains(`[1, 2]`, `2.0`)", "true"},
		{"contains(`[{\"a\": 1}]`, `{\"a\": 1}`)", "true"},
		{"contains(`{}`, 'a')", "error"},
		{"starts_with('abc', 'ab')", "true"},
		{"ends_with('abc', 'ab')", "false"},
		{"join(', ', `[\"a\", \"b\"]`)", `"a, b"`},
		{"join('-', `[]`)", `""`},
		{"join('-', `[1]`)", "error"},
		{"keys(`{\"b\": 1, \"a\": 2}`)", `["a","b"]`},
		{"values(`{\"b\": 1, \"a\": 2}`)", "[2,1]"},
		{"keys(`null`)", "error"},
		{"length('äöü')", "3"},
		{"length(`[1]`)", "1"},
		{"length(`{\"a\": 1}`)", "1"},
		{"length(`null`)", "error"},
		{"length(`12`)", "error"},
		{"map(&a, `[{\"a\": 1}, {\"b\": 2}]`)", "[1,null]"},
		{"map('a', `[]`)", "error"},
		{"max(`[1, 3, 2]`)", "3"},
		{"max(`[\"a\", \"c\"]`)", `"c"`},
		{"max(`[]`)", "null"},
		{"max(`[1, \"a\"]`)", "error"},
		{"min(`[2, 1.5]`)", "1.5"},
		{"min(`[\"b\", \"a\"]`)", `"a"`},
		{"max_by(`[{\"v\": 1}, {\"v\": 2}]`, &v)", `{"v":2}`},
		{"min_by(`[{\"v\": \"b\"}, {\"v\": \"a\"}]`, &v)", `{"v":"a"}`},
		{"max_by(`[]`, &v)", "null"},
		{"max_by(`[{}, {}]`, &v)", "error"},
		{"max_by(`[{}]`, &v)", "{}"},
		{"merge(`{\"a\": 1}`, `{\"a\": 2, \"b\": 3}`)", `{"a":2,"b":3}`},
		{"merge(`1`)", "error"},
		{"merge()", "error"},
		{"not_null(`null`, `0`)", "0"},
		{"not_null(`null`)", "null"},
		{"reverse('abc')", `"cba"`},
		{"reverse(`[1, 2]`)", "[2,1]"},
		{"sort(`[3, 1, 2]`)", "[1,2,3]"},
		{"sort(`[\"b\", \"a\"]`)", `["a","b"]`},
		{"sort(`[1, \"a\"]`)", "error"},
		{"sort(`[]`)", "[]"},
		{"sort_by(`[{\"v\": 2}, {\"v\": 1}]`, &v)", `[{"v":1},{"v":2}]`},
		{"sort_by(`[{\"v\": 2}, {\"v\": \"1\"}]`, &v)", "error"},
		{"sort_by(`[{}, {}]`, &v)", "error"},
		{"to_array('a')", `["a"]`},
		{"to_array(`[1]`)", "[1]"},
		{"to_number('12')", "12"},
		{"to_number('1.5')", "1.5"},
		{"to_number('2.0')", "2"},
		{"to_number('x')", "null"},
		{"to_number(`true`)", "null"},
		{"to_number('NaN')", "null"},
		{"to_string(`{\"b\": 1, \"a\": [true, null, \"<\"]}`)", `"{\"a\":[true,null,\"\\u003c\"],\"b\":1}"`},
		{"to_string('x')", `"x"`},
		{"to_string(`3.0`)", `"3"`},
		{"type(`1`)", `"number"`},
		{"type('')", `"string"`},
		{"type(`null`)", `"null"`},
		{"type(`{}`)", `"object"`},
		{"type(`[]`)", `"array"`},
		{"type(`false`)", `"boolean"`},

		{"compare('a', 'b')", "-1"},
		{"compare('a', 'a') == `0`", "true"},
		{"compare('a', `1`)", "error"},
		{"equal_fold('Go', 'GO')", "true"},
		{"replace('aaa', 'a', 'b', `2`)", `"bba"`},
		{"replace('aaa', 'a', 'b', `-1`)", `"bbb"`},
		{"replace('aaa', 'a', 'b', `0`)", `"aaa"`},
		{"replace_all('a-b-c', '-', '')", `"abc"`},
		{"to_upper('aé')", `"AÉ"`},
		{"to_lower('AB')", `"ab"`},
		{"trim('xxaxx', 'x')", `"a"`},
		{"trim(' a ')", "error"},
		{"trim_prefix('v1.2', 'v')", `"1.2"`},
		{"trim_prefix('1.2', 'v')", `"1.2"`},
		{"split('a,b,', ',')", `["a","b",""]`},
		{"split('aé', '')", `["a","é"]`},
		{"truncate('héllo', `2`)", `"hé"`},
		{"truncate('ab', `9`)", `"ab"`},
		{"truncate('ab', `-1`)", `""`},
		{"to_boolean('TRUE')", "true"},
		{"to_boolean('False')", "false"},
		{"to_boolean('yes')", "error"},
		{"base64_encode('hi')", `"aGk="`},
		{"base64_decode('aGk=')", `"hi"`},
		{"base64_decode('aGk')", "error"},
		{"path_canonicalize('/a/../b//c/.')", `"/b/c"`},
		{"path_canonicalize('')", `""`},
		{"sha256('')", `"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`},
		{"sha1('')", `"da39a3ee5e6b4b0d3255bfef95601890afd80709"`},
		{"md5('')", `"d41d8cd98f00b204e9800998ecf8427e"`},
		{"regex_match('^[0-9]+$', `12`)", "true"},
		{"regex_match('b', 'abc')", "true"},
		{"regex_match('(', 'x')", "error"},
		{"regex_match('x', `true`)", "error"},
		{"regex_replace_all('a(x*)b', '-ab-axxb-', '$1')", `"--xx-"`},
		{"regex_replace_all('a(x*)b', '-ab-axxb-', '${1}W')", `"-W-xxW-"`},
		{"regex_replace_all('([0-9]+)', `16777217`, 'n$1')", `"n16777217"`},
		{"regex_replace_all('x*', 'ab', '-')", `"-a-b-"`},
		{"regex_replace_all_literal('a(x*)b', '-ab-axxb-', '${1}')", `"-${1}-${1}-"`},
		{"pattern_match('prefix-*', 'prefix-foo')", "true"},
		{"pattern_match('1?3', `123`)", "true"},
		{"pattern_match('a', 'ab')", "false"},

		{"label_match(`{\"a\": \"1\"}`, `{\"a\": \"1\", \"b\": \"2\"}`)", "true"},
		{"label_match(`{\"a\": \"1\"}`, `{\"a\": \"2\"}`)", "false"},
		{"label_match(`{}`, `{}`)", "true"},
		{"label_match(`{\"a\": \"1\"}`, `{}`)", "false"},
		{"lookup(`{\"a\": 1}`, 'a')", "1"},
		{"lookup(`{\"a\": 1}`, 'b')", "null"},
		{"lookup(`[5, 6]`, `1`)", "6"},
		{"lookup(`[5]`, `-1`)", "null"},
		{"lookup(`[5]`, `9`)", "null"},
		{"lookup(`[5]`, `0.5`)", "error"},
		{"lookup(`[5]`, 'a')", "error"},
		{"lookup(`{}`, `1`)", "error"},
		{"lookup('a', 'b')", "error"},
		{"items(`{\"b\": 1, \"a\": 2}`, 'k', 'v')", `[{"k":"a","v":2},{"k":"b","v":1}]`},
		{"items(`[\"x\"]`, 'i', 'v')", `[{"i":0,"v":"x"}]`},
		{"items(`{}`, 'k', 'v')", "[]"},
		{"items(`{\"a\": 2}`, 'k', 'v')[0].v", "2"},
		{"sort_by(items(`{\"a\": 2, \"b\": 1}`, 'k', 'v'), &v)[0].k", `"b"`},
		{"object_from_lists(`[\"a\", 1, \"a\"]`, `[1, 2]`)", `{"1":2,"a":null}`},
		{"object_from_lists(`[null]`, `[1]`)", "error"},
		{"parse_json('{\"a\": 1, \"b\": 1.5}')", `{"a":1,"b":1.5}`},
		{"parse_json('{')", "error"},
		{"parse_yaml('a: 1\nb: [x, true]')", `{"a":1,"b":["x",true]}`},
		{"parse_yaml(': :')", "error"},
		{"semver_compare('1.2.3', '>=1.0.0 <2.0.0')", "true"},
		{"semver_compare('4.1.3', '>=4.1.x')", "true"},
		{"semver_compare('x', '<1.0.0')", "true"},
		{"semver_compare('1.0.0', 'x')", "error"},
		{"image_normalize('nginx')", `"docker.io/nginx:latest"`},
		{"image_normalize('r.example/a/b:1')", `"r.example/a/b:1"`},
		{"image_normalize('::')", "error"},

		{"add(`1`, `2`)", "3"},
		{"add(`9007199254740993`, `0`)", "9007199254740992"},
		{"add(`0.1`, `0.4`)", "0.5"},
		{"add('1Mi', '1Mi')", `"2Mi"`},
		{"add('1h', '30s')", `"1h0m30s"`},
		{"add('1', '2')", `"3"`},
		{"add('1Mi', `1`)", "error"},
		{"add('1h', '1Mi')", "error"},
		{"add('x', `1`)", "error"},
		{"add(`null`, `1`)", "error"},
		{"add('5m', '5m')", `"10m"`},
		{"subtract(`3`, `5`)", "-2"},
		{"subtract('2Mi', '1Mi')", `"1Mi"`},
		{"subtract('1h', '30s')", `"59m30s"`},
		{"subtract('1h', `1`)", "error"},
		{"multiply(`3`, `0.5`)", "1.5"},
		{"multiply('2Mi', `2`)", `"4Mi"`},
		{"multiply(`2`, '1h30s')", `"2h1m0s"`},
		{"multiply('1Mi', '1Mi')", "error"},
		{"multiply(`3`, `2`)", "6"},
		{"divide(`3`, `2`)", "1.5"},
		{"divide(`4`, `2`)", "2"},
		{"divide(`1`, `0`)", "error"},
		{"divide('1Gi', '1Mi')", "1024"},
		{"divide('10Mi', `2`)", `"5Mi"`},
		{"divide('1h', '30m30s')", "1.9672131147540983"},
		{"divide('1h30s', `2`)", `"30m15s"`},
		{"divide('1Mi', '0')", "error"},
		{"divide(`1`, '1Mi')", "error"},
		{"divide('10', `3`)", `"3"`},
		{"modulo(`7`, `3`)", "1"},
		{"modulo('10Mi', '3Mi')", `"1Mi"`},
		{"modulo('1h', '25m30s')", `"9m0s"`},
		{"modulo(`1.5`, `1`)", "error"},
		{"modulo(`1`, `0`)", "error"},
		{"modulo(`1`, '1Mi')", "error"},
		{"sum(`[1, 2, 3]`)", "6"},
		{"sum(`[\"1Mi\", \"1Ki\"]`)", `"1025Ki"`},
		{"sum(`[\"1h\", \"1s\"]`)", `"1h0m1s"`},
		{"sum(`[]`)", "error"},
		{"sum(`[1, \"1Mi\"]`)", "error"},
		{"sum(`[\"x\"]`)", `"x"`},
		{"round(`2.5`, `0`)", "3"},
		{"round(`-2.5`, `0`)", "-3"},
		{"round(`3.14159`, `2`)", "3.14"},
		{"round(`1`, `-1`)", "error"},
		{"round(`1`, `0.5`)", "error"},
		{"round(`1.25`, `400`)", "1.25"},

		{"time_now()", `"2024-02-29T13:14:15+02:00"`},
		{"time_now('ignored')", `"2024-02-29T13:14:15+02:00"`},
		{"time_now_utc()", `"2024-02-29T11:14:15Z"`},
		{"time_since('', '2024-02-29T10:14:15Z', '')", `"1h0m0s"`},
		{"time_since('2006', '2020', '2021')", `"8784h0m0s"`},
		{"time_since('', 'x', '')", "error"},
		{"time_add('2024-02-28T23:00:00Z', '2h')", `"2024-02-29T01:00:00Z"`},
		{"time_add('2024-02-28T23:00:00Z', '2 hours')", "error"},
		{"time_parse('02 Jan 06 15:04 -0700', '02 Jan 21 15:04 -0700')", `"2021-01-02T15:04:00-07:00"`},
		{"time_parse('1', '1704067200')", `"2024-01-01T00:00:00Z"`},
		{"time_parse('1', 'x')", "error"},
		{"time_to_cron('2024-02-29T13:14:15Z')", `"14 13 29 2 4"`},
		{"time_utc('2024-02-29T13:14:15+02:00')", `"2024-02-29T11:14:15Z"`},
		{"time_diff('2024-01-01T00:00:00Z', '2024-01-02T00:00:01Z')", `"24h0m1s"`},
		{"time_before('2024-01-01T00:00:00Z', '2024-01-02T00:00:00Z')", "true"},
		{"time_after('2024-01-01T00:00:00Z', '2024-01-02T00:00:00Z')", "false"},
		{"time_between('2024-01-02T00:00:00Z', '2024-01-01T00:00:00Z', '2024-01-03T00:00:00Z')", "true"},
		{"time_between('2024-01-01T00:00:00Z', '2024-01-01T00:00:00Z', '2024-01-03T00:00:00Z')", "false"},
		{"time_truncate('2024-01-01T17:54:30Z', '1h')", `"2024-01-01T17:00:00Z"`},
		{"time_utc('x')", "error"},

		{"is_external_url('https://example.com')", "error"},
		{"random('')", "error"},
		{"random('[')", "error"},
		{"x509_decode('x')", "error"},
	} {
		t.Run(c.expr, func(t *testing.T) {
			got, err := search(t, c.expr, nil)
			if c.want == "error" {
				if err == nil {
					t.Errorf("got %v, want an error", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, c.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFunctionErrorsNameTheFunction(t *testing.T) {
	_, err := search(t, "to_upper(`1`)", nil)
	if want := "JMESPath function 'to_upper': argument #1 is not of type String"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = search(t, "is_external_url('https://example.com')", nil)
	var unsupported *jmespath.UnsupportedError
	if !errors.As(err, &unsupported) {
		t.Errorf("got %v, want an UnsupportedError", err)
	}
}

func TestRandomMatchesAndRepeats(t *testing.T) {
	for _, pattern := range []string{
		"[a-z0-9]{8}", "a", "(ab|cd)+x?", "[^a-z]{5}", `\d{3}-\w*`, ".{4}", "(?i)abc", "[äö]", "x{2,4}y{3,}", "^a$", `\S\s`,
	} {
		expr := "random('" + pattern + "')"
		first, err := search(t, expr, nil)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(first.(string)) {
			t.Errorf("%s = %q, which does not match", expr, first)
		}
		if second, _ := search(t, expr, nil); first != second {
			t.Errorf("%s = %q, then %q with the same seed", expr, first, second)
		}
	}
	both, err := search(t, "[random('[a-z]{20}'), random('[a-z]{20}')]", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	if list := both.([]any); list[0] == list[1] {
		t.Errorf("two calls gave the same: %v", list)
	}
	compiled, _ := jmespath.Compile("random('[a-z]{20}')")
	one, _ := compiled.Search(jmespath.New(now, 1), nil)
	if other, _ := compiled.Search(jmespath.New(now, 2), nil); one == other {
		t.Error("two seeds gave the same")
	}
}

func TestX509Decode(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "web"}, NotAfter: now.Add(time.Hour), DNSNames: []string{"web.shop.svc"},
	}
	decodePEM := func(kind string, der []byte, expr string) (any, error) {
		return search(t, expr, map[string]any{"pem": string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))})
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
