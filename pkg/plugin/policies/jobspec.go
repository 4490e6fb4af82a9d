package policies

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	yaml "sigs.k8s.io/yaml/goyaml.v2"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
)

// jobSpec describes a Job or CronJob.
type jobSpec struct {
	// Name and Namespace of all objects.
	Name, Namespace string
	// Drift makes the Job fail when a preview finds something to change.
	Drift bool
	// Image holds the program.
	Image string
	// Schedule of a CronJob; empty for a Job.
	Schedule string
	// Shards is the number of Pods that divide the objects.
	Shards int
	// Command has the program's flags and arguments, without the policies, the shard and the place of its
	// records.
	Command []string
	// Records keeps the journal and the metrics on the volume of Claim, or of a new PersistentVolumeClaim.
	Records bool
	Claim   string
	// Policies from files, with their inputs.
	Policies []engine.Document
	// Roles are bound to the ServiceAccount.
	Roles []permission.Role
}

// The longest names that Kubernetes takes, also with the suffix that it adds to them.
const (
	maxLabel       = validation.DNS1123LabelMaxLength
	maxCronJobName = maxLabel - len("-2147483647") // of the Job that a CronJob makes
)

// imageName matches an image reference: its registry and path, and perhaps a tag and a digest.
var imageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:-]*(@sha256:[0-9a-f]{64})?$`)

// validate returns an error for a Job that Kubernetes would reject, or never run.
func (s *jobSpec) validate() error {
	if s.Shards < 1 || s.Shards > engine.MaxShards {
		return fmt.Errorf("--shards %d: must be between 1 and %d", s.Shards, engine.MaxShards)
	}
	if err := s.validateName(); err != nil {
		return err
	}
	if problems := validation.IsDNS1123Label(s.Namespace); len(problems) > 0 {
		return fmt.Errorf("-n %q: is not a valid namespace: %s", s.Namespace, problems[0])
	}
	if !imageName.MatchString(s.Image) {
		return fmt.Errorf("--image %q: is not a valid image reference, such as registry.example/kubectl-mutate:v1", s.Image)
	}
	if s.Claim != "" {
		if problems := validation.IsDNS1123Subdomain(s.Claim); len(problems) > 0 {
			return fmt.Errorf("--claim %q: is not a valid name of a PersistentVolumeClaim: %s", s.Claim, problems[0])
		}
	}
	if s.Schedule == "" {
		return nil
	}
	return validateSchedule(s.Schedule)
}

// validateName checks the name, from which Kubernetes derives those of Jobs and, with an index, of Pods.
func (s *jobSpec) validateName() error {
	if problems := validation.IsDNS1123Label(s.Name); len(problems) > 0 {
		return fmt.Errorf("--name %q: must consist of at most %d lower-case letters, digits and '-', the first and the last of them a letter or digit", s.Name, maxLabel)
	}
	most, what := maxLabel, "a Job"
	if s.Schedule != "" {
		most, what = maxCronJobName, "a CronJob"
	}
	if s.sharded() {
		most -= len(fmt.Sprintf("-%d", s.Shards-1))
		what += fmt.Sprintf(" with %d shards", s.Shards)
	}
	if len(s.Name) > most {
		return fmt.Errorf("--name %q: has %d characters; the name of %s may have at most %d", s.Name, len(s.Name), what, most)
	}
	return nil
}

func (s *jobSpec) sharded() bool { return s.Shards > 1 }

// validateSchedule checks a schedule as Kubernetes does, and that it ever comes.
func validateSchedule(text string) error {
	if strings.Contains(text, "TZ=") {
		return fmt.Errorf("--schedule %q: a CronJob takes no TZ=: its times are in the time zone of the controller manager, usually UTC", text)
	}
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		return fmt.Errorf("--schedule %q: %w; it has five fields: minute, hour, day of the month, month, day of the week", text, err)
	}
	if schedule.Next(time.Unix(0, 0)).IsZero() {
		return fmt.Errorf("--schedule %q: such a day never comes", text)
	}
	return nil
}

const (
	// maxPolicy is the maximum size of a ConfigMap on a server, in bytes.
	maxPolicy = 1 << 20
	// maxApplied is the maximum size of a ConfigMap as JSON for kubectl apply, which also keeps it in an
	// annotation: all of an object's may have 256 KiB.
	maxApplied = 240 << 10
	// maxConfigMaps is the maximum number of mounted ConfigMaps.
	maxConfigMaps = 500
)

// configMaps returns the policies, as many to each as kubectl apply takes; a note names a policy that only a
// server-side apply takes.
func (s *jobSpec) configMaps() (out []*corev1.ConfigMap, notes []string, err error) {
	size := 0
	for i, d := range s.Policies {
		if d.Key.IsSecret() {
			return nil, nil, fmt.Errorf("%s: Secret %s: everybody who may read ConfigMaps could read it; leave it out of -p: policies read the Secrets of the cluster", d.Origin, d.Key.Name)
		}
		text, err := yaml.Marshal(d.Object().Object)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", d.Origin, err)
		}
		if len(text) > maxPolicy {
			return nil, nil, fmt.Errorf("%s: %d bytes are more than a ConfigMap takes (%d): divide the policy, or install it in the cluster and use --from-cluster", d.Origin, len(text), maxPolicy)
		}
		quoted, _ := json.Marshal(string(text)) // a string has no way to fail
		if len(quoted) > maxApplied {
			notes = append(notes, d.Origin+" is too large for a client-side apply: use kubectl apply --server-side")
		}
		if size += len(quoted); len(out) == 0 || size > maxApplied {
			if len(out) == maxConfigMaps {
				return nil, nil, fmt.Errorf("-p: the policies need more than %d ConfigMaps: install them in the cluster and use --from-cluster", maxConfigMaps)
			}
			out = append(out, s.configMap(len(out)))
			size = len(quoted)
		}
		out[len(out)-1].Data[fileName(i, d)] = string(text)
	}
	return out, notes, nil
}

func (s *jobSpec) configMap(index int) *corev1.ConfigMap {
	name := s.Name + "-policies"
	if index > 0 {
		name += fmt.Sprintf("-%d", index+1)
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: s.metadata(name), Data: map[string]string{},
	}
}

// notInKeys matches characters that fileName replaces.
var notInKeys = regexp.MustCompile(`[^a-z0-9.-]+`)

// fileName returns the key of a policy; the index keeps their order.
func fileName(index int, d engine.Document) string {
	name := notInKeys.ReplaceAllString(strings.ToLower(d.Key.Kind+"-"+d.Key.Name), "-")
	return fmt.Sprintf("%04d-%s.yaml", index+1, name[:min(len(name), 200)])
}
