// Package cluster is the only package that talks to an API server: it reads
// objects, schemas and installed policies, and sends the patches of a Writer and
// new events.
//
// Objects are listed page by page, and a page is split without being decoded. A
// Client made with Options.ReadOnly cannot write: its HTTP transport refuses
// whatever might.
//
// Requests are repeated in two places. RetryReads is a transport for all reads, with
// little patience. A RetryingClient is for a run that writes: it repeats what can be
// repeated for longer, and no other write.
package cluster
