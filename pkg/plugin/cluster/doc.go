// Package cluster is the only package that talks to an API server: it reads
// objects, schemas and installed policies, and sends the patches of a Writer and
// new events.
//
// Objects are listed page by page. A Client made with Options.ReadOnly cannot write: its HTTP transport
// refuses whatever might.
//
// Requests are repeated by Retry alone. A Client applies it to all reads, for less than
// a second. A RetryingClient applies it for longer to what a run
// that writes can repeat, and to no other write.
package cluster
