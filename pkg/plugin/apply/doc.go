// Package apply makes changes on the server: from a change to a stored object.
// An Executor runs the Tasks of a preview, a plan, a journal or an undo: it checks
// permissions, verifies each change, asks the user, writes with one guarded
// request for each object, keeps the journal, and waits for rollouts.
//
// Writer.Verify reads an object, asks how it should be, plans the request and
// has the server rehearse it as a dry run. Writer.Write sends what was verified
// and nothing else. Somebody else's write in between makes it begin again with
// reading, and go on only if the same change comes out. A request whose answer
// is lost is looked up, never repeated blindly. What to send is planned by
// package request; how it is sent is up to the Server, and how patiently up
// to Patient and Writer.Retry.
package apply
