// Package transport bounds what a server can make this program do. Redirects
// refuses those that would carry a request, and the credentials in it, to another host.
// Bounded ends an answer that is too large, that would take too much memory when it is
// decoded, or that does not end in time, and a request that takes too many connections.
//
// Every HTTP client of the program goes through them.
package transport
