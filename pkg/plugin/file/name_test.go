package file_test

import (
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

func TestPlainName(t *testing.T) {
	long := strings.Repeat("policy-", 18) // of a policy and its rule, which may have 63 letters each
	for text, want := range map[string]string{
		"prod":                    "prod",
		"-p":                      "p",
		"../etc/passwd":           "etc-passwd",
		"arn:aws:eks/prod_1.eu":   "arn-aws-eks-prod_1.eu",
		"":                        "cluster",
		"$(x)\n":                  "x",
		long + "a":                long + "a",
		strings.Repeat("b", 1000): strings.Repeat("b", 200),
	} {
		if got := file.PlainName(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
