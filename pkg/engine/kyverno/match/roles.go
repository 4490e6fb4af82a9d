package match

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Bindings selects the objects that bind users to roles.
func Bindings() []engine.Selection {
	role := engine.Selection{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}
	cluster := role
	cluster.Kind = "ClusterRoleBinding"
	return []engine.Selection{role, cluster}
}

// userRoles are a user's roles: "namespace:name" of Roles, and names of ClusterRoles.
type userRoles struct{ roles, clusterRoles []string }

// rolesOf returns a user's roles by the bindings in the cluster. Kyverno reads them for each request
// (pkg/userinfo/roleRef.go); here they are read once per run.
func rolesOf(ctx context.Context, w *engine.World, user engine.UserInfo) (userRoles, error) {
	if w.Reader == nil {
		return userRoles{}, &engine.UnsupportedError{Field: "roles", Err: errors.New("the role bindings of the user are not known without a cluster or --world")}
	}
	names := append(slices.Clone(user.Groups), user.Username)
	type question struct{ names string }
	key := question{fmt.Sprintf("%q", names)}
	return engine.Once(ctx, w, key, func(w *engine.World) (out userRoles, err error) {
		for _, selection := range Bindings() {
			for binding, err := range w.Reader.List(ctx, selection) {
				if err != nil {
					return out, err
				}
				out.add(binding, names)
			}
		}
		return out, nil
	})
}

func (r *userRoles) add(binding *unstructured.Unstructured, names []string) {
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	if !slices.ContainsFunc(subjects, func(s any) bool { return bindsOneOf(s, names) }) {
		return
	}
	kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	switch kind {
	case "Role":
		r.roles = append(r.roles, binding.GetNamespace()+":"+name)
	case "ClusterRole":
		r.clusterRoles = append(r.clusterRoles, name)
	}
}

func bindsOneOf(value any, names []string) bool {
	s, ok := value.(map[string]any)
	if !ok {
		return false
	}
	name, _ := s["name"].(string)
	if s["kind"] == "ServiceAccount" {
		namespace, _ := s["namespace"].(string)
		name = "system:serviceaccount:" + namespace + ":" + name
	}
	return slices.Contains(names, name)
}
