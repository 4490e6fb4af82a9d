// Package transport guards the connections of the program. Redirects refuses those that would
// carry a request, and the credentials in it, to another host. Bounded ends an answer that is
// too large, and one of which nothing more comes.
//
// Every HTTP client of the program goes through them.
package transport
