// Package request plans the one request that makes a change: the smallest
// apply configuration, or a guarded JSON patch for what server-side apply
// cannot express.
//
// It decides nothing by guessing. An apply configuration is sent only where
// structured-merge-diff, the server's own merge, run here with the object's
// real managedFields, gives exactly the wanted object and takes no more than
// the changed fields. Everything else, removals above all, becomes a JSON patch
// that fails when the object is no longer the one that was read.
//
// Both kinds of request are first sent as a dry run. Classify says in which way
// the server's answer differs from what was wanted, and Takeovers who would
// lose the ownership of which fields.
//
// The package does no I/O and never puts a field's value into a text: values
// may be secret, paths are not.
package request
