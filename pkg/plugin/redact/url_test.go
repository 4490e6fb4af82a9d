package redact_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

func TestURL(t *testing.T) {
	for address, want := range map[string]string{
		"https://example.com/a%2Fb?ref=v1&x":                                                  "https://example.com/a%2Fb?ref=v1&x",
		"https://me:hidden@example.com/p.yaml":                                                "https://xxxxx@example.com/p.yaml",
		"https://ghp_hidden@example.com/p.yaml":                                               "https://xxxxx@example.com/p.yaml",
		"https://example.com/p.yaml?ref=v1&token=hidden":                                      "https://example.com/p.yaml?ref=v1&token=xxxxx",
		"https://example.com/?private_token=hidden&ref=a":                                     "https://example.com/?private_token=xxxxx&ref=a",
		"https://s3.example.com/?X-Amz-Signature=hidden&X-Amz-Credential=hidden&X-Amz-Date=1": "https://s3.example.com/?X-Amz-Signature=xxxxx&X-Amz-Credential=xxxxx&X-Amz-Date=1",
		"https://blob.example.com/p?sv=1&sig=hidden":                                          "https://blob.example.com/p?sv=1&sig=xxxxx",
		"p?token=file":       "p?token=file",
		"app=web,token!=x":   "app=web,token!=x",
		"https://%zz?token=": "https://%zz?token=",
	} {
		if got := redact.URL(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
