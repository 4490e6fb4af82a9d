package factory_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
)

// categories is a mapper that knows categories, too.
type categories struct {
	meta.RESTMapper
	all map[string][]schema.GroupResource
}

func (c categories) Expand(category string) ([]schema.GroupResource, bool) {
	resources, ok := c.all[category]
	return resources, ok
}

func TestResolve(t *testing.T) {
	apps, core := schema.GroupVersion{Group: "apps", Version: "v1"}, schema.GroupVersion{Version: "v1"}
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(apps.WithKind("Deployment"), meta.RESTScopeNamespace)
	kinds.Add(core.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper := categories{kinds, map[string][]schema.GroupResource{
		"all": {{Resource: "pods"}, {Group: "apps", Resource: "deployments"}, {Group: "gone", Resource: "webs"}},
	}}
	for typed, want := range map[string]string{
		"":                           "",
		"deployments":                "Deployment.apps/",
		"deployments,pods":           "Deployment.apps/ Pod/",
		"deployments pods":           "Deployment.apps/ Pod/",
		"deployments.v1.apps":        "Deployment.apps/",
		"deployment/web pods":        "Deployment.apps/web Pod/",
		"deployment/pods pod/pods":   "Deployment.apps/pods Pod/pods",
		"deployment web":             "Deployment.apps/web",
		"deployment web pods db":     "Deployment.apps/web Deployment.apps/pods Deployment.apps/db",
		"deployments,pods web":       "Deployment.apps/web Pod/web",
		"all":                        "Pod/ Deployment.apps/",
		"all,pods":                   "Pod/ Deployment.apps/",
		"all web":                    "Pod/web Deployment.apps/web",
		"all/web":                    `there is no resource type "all"`,
		"webs":                       `there is no resource type "webs"`,
		"webs web":                   `there is no resource type "webs"`,
		"deploymet/web":              `there is no resource type "deploymet"; did you mean "deployment"?`,
		"Depoyments.apps":            `there is no resource type "Depoyments.apps"; did you mean "deployments"?`,
		"confimaps":                  `there is no resource type "confimaps"`, // the server has no ConfigMaps
		"deployments,webs web":       `there is no resource type "webs"`,
		"deployment/web web":         `there is no resource type "web"`,
		"deployment/":                `argument "deployment/": use TYPE, TYPE,TYPE or TYPE/NAME`,
		"deployment/web/scale":       `argument "deployment/web/scale": use TYPE, TYPE,TYPE or TYPE/NAME`,
		"deployments,pods/web":       `argument "deployments,pods/web": use TYPE, TYPE,TYPE or TYPE/NAME`,
		"deployments.v1.apps/web":    "Deployment.apps/web",
		"Deployments.apps web store": "Deployment.apps/web Deployment.apps/store",
	} {
		t.Run(typed, func(t *testing.T) {
			keys, err := factory.Resolve(mapper, strings.Fields(typed))
			var got []string
			for _, k := range keys {
				got = append(got, k.GroupKind.String()+"/"+k.Name)
			}
			if err != nil {
				got = []string{err.Error()}
			}
			if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
