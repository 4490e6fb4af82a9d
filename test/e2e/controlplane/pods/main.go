// Command pods prints, for each workload of the files that it is given, the Pod that the controllers of
// Kubernetes create for it, before admission. It runs the controllers on a server in memory; workloads and Pods
// have the defaults of an API server.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	jobregistry "k8s.io/kubernetes/pkg/registry/batch/job"
	"sigs.k8s.io/yaml"
)

func main() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL", "-v=0"})
	for _, path := range os.Args[1:] {
		text, err := os.ReadFile(path)
		if err == nil {
			err = file(text)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

// file prints the Pods of the workloads of a file.
func file(text []byte) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		object, err := decoded(document)
		if err != nil {
			return err
		}
		if object == nil {
			continue
		}
		pod, err := podOf(object)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		for _, o := range []runtime.Object{object, pod} {
			out, err := yaml.Marshal(o)
			if err != nil {
				return err
			}
			fmt.Printf("---\n%s", out)
		}
	}
}

// decoded returns a workload as a server stores it.
func decoded(document []byte) (runtime.Object, error) {
	object, gvk, err := legacyscheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
	if err != nil || !slices.Contains([]string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController"}, gvk.Kind) {
		return nil, nil
	}
	about, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	if about.GetNamespace() == "" {
		about.SetNamespace("default")
	}
	about.SetUID(types.UID("uid-of-" + about.GetName()))
	about.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-2 * time.Minute).Truncate(time.Second)))
	if object, err = stored(object, *gvk); err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(*gvk)
	return object, nil
}

// stored returns an object as a server writes it when it is created.
func stored(object runtime.Object, gvk schema.GroupVersionKind) (runtime.Object, error) {
	legacyscheme.Scheme.Default(object)
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, schema.GroupVersion{Group: gvk.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return nil, err
	}
	switch gvk.Kind {
	case "Job":
		jobregistry.Strategy.PrepareForCreate(context.Background(), internal)
	case "DaemonSet":
		daemonset.Strategy.PrepareForCreate(context.Background(), internal)
	}
	out, err := legacyscheme.Scheme.ConvertToVersion(internal, gvk.GroupVersion())
	if err == nil {
		out.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return out, err
}

// podOf runs the controllers on a workload until they create a Pod.
func podOf(object runtime.Object) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	client := fake.NewClientset(node)
	pods := make(chan *corev1.Pod, 100)
	var once sync.Mutex
	count := 0
	client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		created := action.(clienttesting.CreateAction).GetObject()
		about, err := meta.Accessor(created)
		if err != nil {
			return false, nil, nil
		}
		about.SetNamespace(action.GetNamespace())
		legacyscheme.Scheme.Default(created)
		if about.GetUID() == "" {
			about.SetUID(types.UID("uid-of-" + about.GetName()))
		}
		if j, is := created.(*batchv1.Job); is {
			job, err := stored(j, batchv1.SchemeGroupVersion.WithKind("Job"))
			if err != nil {
				return true, nil, err
			}
			*j = *job.(*batchv1.Job)
		}
		if pod, is := created.(*corev1.Pod); is {
			pods <- pod.DeepCopy()
			once.Lock()
			defer once.Unlock()
			if count++; pod.Name == "" {
				pod.Name = fmt.Sprint(pod.GenerateName, count)
			}
		}
		return false, nil, nil
	})
	if err := create(ctx, client, object); err != nil {
		return nil, err
	}
	if err := run(ctx, client); err != nil {
		return nil, err
	}
	select {
	case pod := <-pods:
		pod.UID = ""
		return stored(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	case <-ctx.Done():
		about, _ := meta.Accessor(object)
		return nil, fmt.Errorf("no Pod for %s %s", object.GetObjectKind().GroupVersionKind().Kind, about.GetName())
	}
}

func create(ctx context.Context, c *fake.Clientset, object runtime.Object) (err error) {
	o := metav1.CreateOptions{}
	switch w := object.(type) {
	case *appsv1.Deployment:
		_, err = c.AppsV1().Deployments(w.Namespace).Create(ctx, w.DeepCopy(), o)
	case *appsv1.ReplicaSet:
		_, err = c.AppsV1().ReplicaSets(w.Namespace).Create(ctx, w.DeepCopy(), o)
	case *appsv1.StatefulSet:
		_, err = c.AppsV1().StatefulSets(w.Namespace).Create(ctx, w.DeepCopy(), o)
	case *appsv1.DaemonSet:
		_, err = c.AppsV1().DaemonSets(w.Namespace).Create(ctx, w.DeepCopy(), o)
	case *batchv1.Job:
		_, err = c.BatchV1().Jobs(w.Namespace).Create(ctx, w.DeepCopy(), o)
	case *batchv1.CronJob:
		w = w.DeepCopy()
		w.Spec.Schedule = "* * * * *"
		_, err = c.BatchV1().CronJobs(w.Namespace).Create(ctx, w, o)
	case *corev1.ReplicationController:
		_, err = c.CoreV1().ReplicationControllers(w.Namespace).Create(ctx, w.DeepCopy(), o)
	default:
		err = fmt.Errorf("%s: not a workload of apps/v1, batch/v1 or v1", reflect.TypeOf(object))
	}
	return err
}

func run(ctx context.Context, c *fake.Clientset) error {
	f := informers.NewSharedInformerFactory(c, 0)
	apps, core, batch := f.Apps().V1(), f.Core().V1(), f.Batch().V1()
	d, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), c)
	if err != nil {
		return err
	}
	ds, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(), c, flowcontrol.NewBackOff(time.Second, time.Minute))
	if err != nil {
		return err
	}
	j, err := job.NewController(ctx, c, core.Pods(), batch.Jobs(), nil, nil)
	if err != nil {
		return err
	}
	cj, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), c)
	if err != nil {
		return err
	}
	rs := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), c, 1)
	ss := statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(), apps.ControllerRevisions(), c)
	rc := replication.NewReplicationManager(ctx, core.Pods(), core.ReplicationControllers(), c, 1)
	f.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	for _, run := range []func(context.Context, int){d.Run, ds.Run, j.Run, cj.Run, rs.Run, ss.Run, rc.Run} {
		go run(ctx, 1)
	}
	return nil
}
