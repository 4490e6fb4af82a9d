// Package structured prints what a run finds for programs: as one JSON or YAML
// report, as names, as manifests, as JSON patches, or through a template or query.
//
// A report is one object with a long list in it. It is written piece by piece, so
// that memory does not grow with the run.
package structured
