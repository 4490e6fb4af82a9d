// Package transport guards the connections of the program. Redirects refuses to carry a request, and its
// credentials, to another host. Bounded ends a response that is too large or pauses too long.
//
// Every HTTP client of the program uses this package.
package transport
