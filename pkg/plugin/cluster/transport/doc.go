// Package transport refuses, repeats and reports requests on their way to an API
// server.
package transport
