// Package cluster is the only package that talks to an API server: it reads
// objects, schemas and installed policies, and sends the patches of a Writer and
// new events.
//
// Objects are listed page by page. A Client with Options.ReadOnly cannot write: its HTTP transport refuses
// all requests that might.
//
// Only Retry repeats requests. A Client retries all reads, for less than a second. A RetryingClient retries
// longer, and also the writes that are safe to repeat.
package cluster
