// Package apply makes changes on the server: from a change to a stored object.
// An Executor runs the Tasks of a preview, a plan, a journal or an undo: it checks
// permissions, verifies each change, asks the user, writes with one guarded
// request for each object, keeps the journal, and waits for rollouts.
//
// Writer.Verify reads an object, asks how it should be, plans the request (package
// request) and sends it as a dry run. Writer.Write sends what was verified and
// nothing else. If another client has written the object in between, it is read and
// verified again, and written only if the same change comes out. A request whose
// answer was lost is looked up, and never repeated blindly; what can be repeated,
// the Server repeats (cluster.RetryingClient).
package apply
