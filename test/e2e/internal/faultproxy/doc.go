// Package faultproxy stands between a client and an API server, and has requests
// fail in the ways in which networks and servers do.
//
// What happens to a request depends on a seed, on what is asked for, and on how
// often that was asked for before: not on the time, and not on what else is under
// way, so that a run of a concurrent client fails in the same way when it is
// repeated. What reached the server is recorded, so that a test can find out what was
// written from what the client believes to have written.
//
// Answers are read whole before they are passed on. Watches and other streams are
// not supported.
package faultproxy
