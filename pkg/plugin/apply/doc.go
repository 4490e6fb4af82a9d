// Package apply writes one change to the server with a guarded request.
//
// Writer is the algorithm: read, want, plan, rehearse as a dry run, judge the
// answer, write the very same request, and begin again with reading when
// somebody else was faster. What to send is planned by pkg/engine/intent; how
// it is sent is up to the Server.
package apply
