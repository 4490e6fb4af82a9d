// Package request plans the one request that makes a change: the smallest apply
// configuration, or a guarded JSON patch for what server-side apply cannot express.
//
// It guesses nothing. An apply configuration is sent only if structured-merge-diff,
// the server's own merge, run here with the object's real managedFields, results in
// exactly the wanted object and takes no more than the changed fields. Everything
// else, removals above all, becomes a JSON patch that fails if the object is no
// longer the one that was read.
//
// Both kinds of request are first sent as a dry run. Classify says in which way the
// server's answer differs from what was wanted, and Takeovers who would lose the
// ownership of which fields.
//
// A change is compared here once more than in the evaluation that found it, since
// the fields that engine/diff names for people and files fit no request:
// structured-merge-diff's comparison says what an apply would own, by the server's
// rules, and a JSON patch counts list elements by index in a changing list.
//
// The package does no I/O and never puts a field's value into a text: values may be
// secret, paths are not. It is apart from package apply because plans, journals and
// previews say how a change would be sent, and send nothing.
package request
