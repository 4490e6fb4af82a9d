package mutatingpolicy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Target is one resource that targetMatchConstraints name.
type Target struct {
	Resource    schema.GroupVersionResource
	Subresource string
	Names       []string // of the objects; a single empty one stands for all
	// Labels selects objects by the objectSelector. It is never nil: constraints
	// filter what is there, and a name in them is no object that has to exist.
	Labels *metav1.LabelSelector
}

// Wildcard tells whether the resource is a pattern.
func (t Target) Wildcard() bool {
	return slices.Contains([]string{t.Resource.Group, t.Resource.Version, t.Resource.Resource, t.Subresource}, "*")
}

// Targets lists the resources of the rules.
func (c *Constraints) Targets() []Target {
	selected := labelsOf(c.objects)
	if selected == nil {
		selected = &metav1.LabelSelector{}
	}
	var out []Target
	for i := range c.rules {
		r := &c.rules[i]
		names := r.names
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range r.groups {
			for _, version := range r.versions {
				for _, known := range r.resources {
					out = append(out, Target{
						Resource:    schema.GroupVersionResource{Group: group, Version: version, Resource: known.name},
						Subresource: known.subresource, Names: names, Labels: selected,
					})
				}
			}
		}
	}
	return out
}

// SubresourceOf is the subresource through which the rules want a resource to be
// written; empty for the object itself.
func (c *Constraints) SubresourceOf(r schema.GroupVersionResource) string {
	for i := range c.rules {
		x := &c.rules[i]
		if !listed(x.groups, r.Group) || !listed(x.versions, r.Version) {
			continue
		}
		for _, known := range x.resources {
			if wild(known.name, r.Resource) {
				return known.subresource
			}
		}
	}
	return ""
}

// WithoutLabels are the constraints without their objectSelector.
func (c *Constraints) WithoutLabels() *Constraints {
	out := *c
	out.objects = nil
	return &out
}
