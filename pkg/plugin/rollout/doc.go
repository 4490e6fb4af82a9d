// Package rollout waits until workloads whose template was changed run it
// everywhere, by the rules of kubectl rollout status.
package rollout
