// Package watch follows a cluster: what changes there becomes events, which are evaluated as the admission requests that
// they were.
//
// A Follower lists a resource, watches it from there, and notices by a new listing what a broken watch has missed. Of the objects it
// keeps versions and digests, and the last state where rules ask for it. Its events go through a Queue, which
// joins those of one object and holds up the followers when it is full: so memory does not grow with the number of changes. A Source
// hands some events to an evaluation.
package watch
