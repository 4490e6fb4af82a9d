package kyverno

import "testing"

// TestServiceAccount splits user names as Kyverno does (pkg/engine/context, AddServiceAccount).
func TestServiceAccount(t *testing.T) {
	for user, want := range map[string][2]string{
		"system:serviceaccount:shop:deployer":   {"deployer", "shop"},
		"system:serviceaccount:shop:deployer:x": {"deployer", "shop"},
		"system:serviceaccount:shop":            {},
		"system:serviceaccount:":                {},
		"jane:a:b:c":                            {},
	} {
		if name, namespace := serviceAccount(user); name != want[0] || namespace != want[1] {
			t.Errorf("%s: got %q in %q, want %q in %q", user, name, namespace, want[0], want[1])
		}
	}
}
