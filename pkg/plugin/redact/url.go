package redact

import (
	"net/url"
	"regexp"
	"strings"
)

// credentialName is like the names of the parameters in which URLs have credentials: token, private_token, X-Amz-Signature, sig.
var credentialName = regexp.MustCompile(`(?i)token|secret|passw|signature|credential|^sig$|api[-_]?key|access[-_]?key|^auth`)

// URL returns a URL as it may be shown: without a user, who may be a token, and a password, and without the values of parameters that have
// the names of credentials; xxxxx stands for them. Any other text is returned as it is.
func URL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	parameters := strings.Split(u.RawQuery, "&")
	for i, p := range parameters {
		if name, value, _ := strings.Cut(p, "="); value != "" && credentialName.MatchString(name) {
			parameters[i] = name + "=xxxxx"
		}
	}
	u.RawQuery = strings.Join(parameters, "&")
	if u.User != nil {
		u.User = url.User("xxxxx")
	}
	return u.String()
}
