package policies

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// The paths and the user of the container.
const (
	program     = "/kubectl-mutate" // as the image has it
	policiesDir = "/policies"
	recordsDir  = "/records"
	tempDir     = "/tmp"
	anyUser     = 65532 // distroless calls it nonroot
)

// The times of a CronJob.
const (
	// to start a missed run; without a limit, a hundred missed runs stop the CronJob
	maxLate = time.Hour
	maxRun  = 6 * time.Hour      // then a run that hangs is ended, since it keeps the next from starting
	maxKept = 7 * 24 * time.Hour // after the end of a run
)

// indexVariable is the index of a Pod of an indexed Job.
const indexVariable = "$(JOB_COMPLETION_INDEX)"

// manifests returns the objects in the order of their creation, and notes for their reader. It fails where
// validate does, and for a policy that is too large or a Secret.
func (s *jobSpec) manifests() (objects []any, notes []string, err error) {
	if err := s.validate(); err != nil {
		return nil, nil, err
	}
	policies, notes, err := s.configMaps()
	if err != nil {
		return nil, nil, err
	}
	objects = append(objects, &corev1.ServiceAccount{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: s.metadata(s.Name),
		AutomountServiceAccountToken: new(false),
	})
	for _, role := range s.Roles {
		role.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: s.Name}}
		objects = append(objects, role)
	}
	for _, p := range policies {
		objects = append(objects, p)
	}
	if s.Records && s.Claim == "" {
		objects = append(objects, s.claim())
	}
	spec := s.job(policies)
	if s.Schedule == "" {
		return append(objects, &batchv1.Job{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: s.metadata(s.Name), Spec: spec,
		}), notes, nil
	}
	spec.ActiveDeadlineSeconds, spec.TTLSecondsAfterFinished = new(int64(maxRun/time.Second)),
		new(int32(maxKept/time.Second))
	return append(objects, &batchv1.CronJob{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"}, ObjectMeta: s.metadata(s.Name),
		Spec: batchv1.CronJobSpec{
			Schedule: s.Schedule, ConcurrencyPolicy: batchv1.ForbidConcurrent,
			StartingDeadlineSeconds: new(int64(maxLate / time.Second)),
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: s.labels()}, Spec: spec,
			},
		},
	}), notes, nil
}

func (s *jobSpec) labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "kubectl-mutate", "app.kubernetes.io/instance": s.Name}
}

func (s *jobSpec) metadata(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: s.labels()}
}

// claim returns a claim for a volume; several shards write to it at once.
func (s *jobSpec) claim() *corev1.PersistentVolumeClaim {
	mode := corev1.ReadWriteOnce
	if s.sharded() {
		mode = corev1.ReadWriteMany
	}
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: s.metadata(s.claimName()),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}

func (s *jobSpec) claimName() string {
	return cmp.Or(s.Claim, s.Name+"-records")
}

// job returns a Job whose Pods are retried, unless a retry would end the same way.
func (s *jobSpec) job(policies []*corev1.ConfigMap) batchv1.JobSpec {
	ends := batchv1.PodFailurePolicyRule{
		Action: batchv1.PodFailurePolicyActionFailJob,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: new(container), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn,
			Values: []int32{process.ExitIncomplete},
		},
	}
	if s.Drift {
		ends.OnExitCodes.Values = []int32{process.ExitChanges, process.ExitIncomplete} // in their order
	}
	spec := batchv1.JobSpec{
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: s.labels()}, Spec: s.pod(policies)},
	}
	if s.sharded() {
		n := int32(s.Shards) // at most engine.MaxShards
		spec.CompletionMode, spec.Completions, spec.Parallelism = new(batchv1.IndexedCompletion), &n, &n
		spec.BackoffLimitPerIndex = new(int32(2))
		ends.Action = batchv1.PodFailurePolicyActionFailIndex
	} else {
		spec.BackoffLimit = new(int32(2))
	}
	spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
			},
		},
		ends,
	}}
	return spec
}

// container is the name of the only container.
const container = "kubectl-mutate"

// pod meets the Pod Security Standard "restricted".
func (s *jobSpec) pod(policies []*corev1.ConfigMap) corev1.PodSpec {
	mounts, volumes := s.volumes(policies)
	return corev1.PodSpec{
		ServiceAccountName: s.Name, AutomountServiceAccountToken: new(true), EnableServiceLinks: new(false),
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{corev1.LabelOSStable: "linux"},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(anyUser)), RunAsGroup: new(int64(anyUser)),
			FSGroup:        new(int64(anyUser)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: container, Image: s.Image, Command: []string{program}, Args: s.args(),
			Env: []corev1.EnvVar{{Name: "HOME", Value: tempDir}, {Name: "XDG_STATE_HOME", Value: recordsDir}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
				},
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError, VolumeMounts: mounts,
		}},
		Volumes: volumes,
	}
}

func (s *jobSpec) volumes(policies []*corev1.ConfigMap) ([]corev1.VolumeMount, []corev1.Volume) {
	mounts := []corev1.VolumeMount{{Name: "tmp", MountPath: tempDir}}
	volumes := []corev1.Volume{
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	if len(policies) > 0 {
		projected := &corev1.ProjectedVolumeSource{}
		for _, p := range policies {
			projected.Sources = append(projected.Sources, corev1.VolumeProjection{
				ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: p.Name}},
			})
		}
		mounts = append(mounts, corev1.VolumeMount{Name: "policies", MountPath: policiesDir, ReadOnly: true})
		volumes = append(volumes,
			corev1.Volume{Name: "policies", VolumeSource: corev1.VolumeSource{Projected: projected}})
	}
	if s.Records {
		mounts = append(mounts, corev1.VolumeMount{Name: "records", MountPath: recordsDir})
		volumes = append(volumes, corev1.Volume{Name: "records", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.claimName()},
		}})
	}
	return mounts, volumes
}

// args returns the arguments of the program, in which the kubelet would expand $(NAME).
func (s *jobSpec) args() []string {
	out := make([]string, 0, len(s.Command))
	for _, arg := range s.Command {
		out = append(out, strings.ReplaceAll(arg, "$", "$$"))
	}
	if len(s.Policies) > 0 {
		out = append(out, "--policy="+policiesDir)
	}
	metrics := recordsDir + "/" + s.Name + ".prom"
	if s.sharded() {
		out = append(out, fmt.Sprintf("--shard=%s/%d", indexVariable, s.Shards))
		metrics = fmt.Sprintf("%s/%s-%s.prom", recordsDir, s.Name, indexVariable)
	}
	if s.Records {
		out = append(out, "--metrics="+metrics)
	}
	return out
}
