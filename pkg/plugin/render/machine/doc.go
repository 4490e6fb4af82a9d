// Package machine prints what a run finds for programs: a report, names, manifests and patches.
package machine
