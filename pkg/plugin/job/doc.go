// Package job makes the manifests of a Job or CronJob that previews or applies policies inside a cluster: a
// ServiceAccount, its roles, the policies in ConfigMaps, a volume for what a run that writes records.
//
// The manifests are the same for the same policies, flags and cluster. What they are made of is untrusted: no text
// of a policy acts on a terminal, a shell that the manifests are pasted into, or the kubelet.
package job
