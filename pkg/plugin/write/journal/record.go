// Package journal keeps a durable record of a run that writes: what was planned, each
// write before it is attempted, and its outcome.
//
// A journal is an append-only file of JSON Lines. A run that is killed, or loses
// power, leaves at most a torn last line behind; the lines before it say which entries
// are done, failed, in doubt or not begun.
//
// Values of Secrets are left out unless the user asks for them.
package journal

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// Header is the first record: which run this is.
type Header struct {
	// APIVersion is that of the format, plan.APIVersion. The first format had none.
	APIVersion string `json:"apiVersion"`

	ID string `json:"id"`
	// Command is the name of the command, and Arguments what was typed after it,
	// without credentials.
	Command   string    `json:"command"`
	Arguments []string  `json:"arguments,omitempty"`
	Started   time.Time `json:"started"`
	// FieldManager is the manager that the writes are recorded under, so that a
	// run that is resumed uses the same.
	FieldManager string `json:"fieldManager"`
	// Allowed is what the user allowed when the run began, and holds when it is
	// resumed.
	Allowed Allowed `json:"allowed,omitzero"`
	// Secrets reports that values of Secrets are in the journal, which only the user may decide.
	Secrets bool `json:"secrets,omitempty"`
	// Undoes is the ID of the journal whose writes this run undoes; empty for other runs.
	Undoes string `json:"undoes,omitempty"`
	// Run is how the changes came about. For an undo it has only the cluster, the
	// version and the clock.
	Run plan.Run `json:"run"`
}

// Allowed is what a user allowed beyond the changes themselves, by the flags of
// apply-existing with these names.
type Allowed struct {
	// ForceConflicts takes over fields whose owners would set them back, TakeFrom only
	// those of these managers.
	ForceConflicts bool     `json:"forceConflicts,omitempty"`
	TakeFrom       []string `json:"takeFrom,omitempty"`
	// IncludeManaged also writes objects that something else manages and may revert.
	IncludeManaged bool `json:"includeManaged,omitempty"`
	// SkipRejected skips objects that are rejected, instead of writing nothing.
	SkipRejected bool `json:"skipRejected,omitempty"`
}

// Allow adds what was allowed when a run was started.
func (a *Allowed) Allow(before Allowed) {
	a.ForceConflicts = a.ForceConflicts || before.ForceConflicts
	a.TakeFrom = slices.Concat(a.TakeFrom, before.TakeFrom)
	a.IncludeManaged = a.IncludeManaged || before.IncludeManaged
	a.SkipRejected = a.SkipRejected || before.SkipRejected
}

// String is the flags as they are typed.
func (a Allowed) String() string {
	var flags []string
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"--force-conflicts", a.ForceConflicts},
		{"--include-managed", a.IncludeManaged},
		{"--skip-rejected", a.SkipRejected},
	} {
		if f.set {
			flags = append(flags, f.name)
		}
	}
	for _, manager := range a.TakeFrom {
		flags = append(flags, "--take-from="+manager)
	}
	return strings.Join(flags, " ")
}

// record is one line: exactly one of the fields is set.
type record struct {
	Header  *Header     `json:"header,omitempty"`
	Planned *plan.Entry `json:"planned,omitempty"`
	Begin   *begin      `json:"begin,omitempty"`
	Attempt *Attempt    `json:"attempt,omitempty"`
	Result  *Result     `json:"result,omitempty"`
	Resumed *Resumed    `json:"resumed,omitempty"`
	End     *End        `json:"end,omitempty"`

	object string // that is planned, as the line has it
}

// begin follows the planned entries: from here on there may be writes. A watch plans more after the End of a
// run.
type begin struct {
	Entries int       `json:"entries"`
	Time    time.Time `json:"time"`
}

// Attempt is recorded before a request that writes is sent.
type Attempt struct {
	// Entry is the place of the object among the planned entries, from 0.
	Entry       int    `json:"entry"`
	Subresource string `json:"subresource,omitempty"`
	// UID and ResourceVersion are those that the request is guarded with.
	UID             types.UID      `json:"uid,omitempty"`
	ResourceVersion string         `json:"resourceVersion"`
	Method          request.Method `json:"method"`
	// Partial is the object as it is, and as the dry run answered.
	diff.Partial
	Time time.Time `json:"time"`
}

// Result is recorded after a write, or once it is known that there will be none.
type Result struct {
	Entry       int    `json:"entry"`
	Subresource string `json:"subresource,omitempty"`
	// Outcome is apply's: "applied", "unchanged", "failed", ...
	Outcome string `json:"outcome"`
	// Written reports that the server stored the request. ResourceVersion is then
	// that of the object after it, and Partial the object before it and as the
	// server answered, what admission changed included.
	Written         bool      `json:"written,omitempty"`
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	diff.Partial
	// Failed reports that the object is not as wanted: Error says why.
	Failed bool `json:"failed,omitempty"`
	// Retries counts how often the request was sent again.
	Retries int `json:"retries,omitempty"`
	// Error is masked when it is recorded.
	Error string `json:"error,omitempty"`
	// More reports that another request of the same entry follows: the part of the
	// change that goes to /status.
	More bool      `json:"more,omitempty"`
	Time time.Time `json:"time"`
}

// End is the last record of a run that finished, or was interrupted cleanly. In the journal of a watch others
// follow.
type End struct {
	// Interrupted reports that the user stopped the run.
	Interrupted bool `json:"interrupted,omitempty"`
	// Outcomes counts the results.
	Outcomes map[string]int `json:"outcomes,omitempty"`
	Time     time.Time      `json:"time"`
}

// Resumed is recorded when a later run resumes the journal.
type Resumed struct {
	Version   string    `json:"version"`
	Arguments []string  `json:"arguments,omitempty"`
	Time      time.Time `json:"time"`
}
