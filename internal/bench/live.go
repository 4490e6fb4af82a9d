//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	pageSize = 500 // of kubectl, and of the program
	writers  = 8
)

// live are the rows on the API server of KUBECONFIG, which gets the Pods of the workload.
func (b *bench) live() ([]row, error) {
	c, err := newServer()
	if err != nil {
		return nil, err
	}
	if err := c.load(b.objects); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	one, err := b.workload.policies(0)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, p := range []struct{ name, path string }{{"1 Kyverno policy", one}, {"10 Kyverno policies", filepath.Join(b.data, "kyverno")}} {
		rows = append(rows, row{
			work:    fmt.Sprintf("%d Pods of a server x %s, summary", b.objects, p.name),
			command: []string{b.program, "preview", "pods", "-A", "-p", p.path, "-o", "summary", "--exit-code=false"},
			base:    []string{self, "-list"},
		})
	}
	return rows, nil
}

// server is the one that KUBECONFIG names.
type server struct{ *rest.RESTClient }

func newServer() (server, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return server{}, err
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion() // of errors
	c, err := rest.UnversionedRESTClientFor(config)
	return server{c}, err
}

// load creates the first n Pods of the workload.
func (s server) load(n int) error {
	pods := make(chan object)
	failed := make(chan error, writers)
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			var err error
			for pod := range pods {
				if err == nil {
					err = s.create("/api/v1/namespaces/"+pod["metadata"].(object)["namespace"].(string)+"/pods", pod)
				}
			}
			failed <- err
		})
	}
	g := generator{rand.New(rand.NewPCG(1, 2))} // the same numbers each time
	namespaces := map[any]error{}
	for i, made := 0, 0; made < n; i++ {
		pod := g.object(i)
		if pod["kind"] != "Pod" {
			continue
		}
		made++
		delete(pod["spec"].(object), "serviceAccountName") // nothing makes ServiceAccounts there
		name := pod["metadata"].(object)["namespace"]
		if _, known := namespaces[name]; !known {
			namespaces[name] = s.create("/api/v1/namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name}})
		}
		pods <- pod
	}
	close(pods)
	all.Wait()
	close(failed)
	var errs []error
	for err := range failed {
		errs = append(errs, err)
	}
	for _, err := range namespaces {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// create creates an object; one that is there is kept.
func (s server) create(path string, o object) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	err = s.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).Do(context.Background()).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// bareList lists all Pods in pages and decodes them, one page after the other, and keeps none.
func bareList() error {
	s, err := newServer()
	if err != nil {
		return err
	}
	for next := ""; ; {
		text, err := s.Get().AbsPath("/api/v1/pods").SetHeader("Accept", "application/json").
			Param("limit", fmt.Sprint(pageSize)).Param("continue", next).Do(context.Background()).Raw()
		if err != nil {
			return err
		}
		var page unstructured.UnstructuredList
		if err := page.UnmarshalJSON(text); err != nil {
			return err
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}
