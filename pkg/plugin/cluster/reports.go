package cluster

import (
	"context"
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// ReportClient writes reports, and can write nothing else: its connection refuses it.
type ReportClient struct {
	*Client
	// FieldManager owns what it writes.
	FieldManager string
}

// NewReportClient makes a client that may write the objects of resources, and read.
func NewReportClient(getter genericclioptions.RESTClientGetter, o Options, manager string, resources []schema.GroupResource) (*ReportClient, error) {
	o.ReadOnly, o.But = true, resources
	c, err := New(getter, o)
	if err != nil {
		return nil, err
	}
	return &ReportClient{Client: c, FieldManager: manager}, nil
}

// Apply sends a server-side apply, which takes all fields of the object.
func (c *ReportClient) Apply(ctx context.Context, key engine.ObjectKey, body []byte) error {
	_, err := RetryingClient{Client: c.Client}.Patch(ctx, key, Patch{Type: types.ApplyPatchType, Body: body, FieldManager: c.FieldManager, Force: true})
	return err
}

// Delete deletes the object that has a UID, once.
func (c *ReportClient) Delete(ctx context.Context, key engine.ObjectKey, uid types.UID) error {
	segments, err := c.pathOf(ctx, key)
	if err != nil {
		return err
	}
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err != nil {
		return err
	}
	_, err = do(ctx, http.MethodDelete, c.rest.Delete().AbsPath(segments...).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body))
	return err
}
