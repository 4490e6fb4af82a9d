// Package journal keeps a durable record of a run that writes: the planned changes, each write before its
// attempt, and its outcome.
//
// A journal is an append-only file of JSON Lines. A kill or a power failure leaves at most a torn last line;
// the lines before it tell which entries are done, failed, in doubt or not begun.
//
// Values of Secrets are left out unless the user includes them.
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

// Header is the first record: it identifies the run.
type Header struct {
	// APIVersion is the format version, plan.APIVersion. The first format had none.
	APIVersion string `json:"apiVersion"`

	ID string `json:"id"`
	// Command is the name of the command, and Arguments are its arguments without credentials.
	Command   string    `json:"command"`
	Arguments []string  `json:"arguments,omitempty"`
	Started   time.Time `json:"started"`
	// FieldManager is the field manager of the writes, also for a resumed run.
	FieldManager string `json:"fieldManager"`
	// Allowed is what the user allowed at the start; it stays valid when the run is resumed.
	Allowed Allowed `json:"allowed,omitzero"`
	// Secrets reports that the journal contains values of Secrets, which only the user may choose.
	Secrets bool `json:"secrets,omitempty"`
	// Undoes is the ID of the journal that this run undoes; empty for other runs.
	Undoes string `json:"undoes,omitempty"`
	// Run describes the origin of the changes. For an undo it has only the cluster, the version and the clock.
	Run plan.Run `json:"run"`
}

// Allowed is the set of permissions that the user gave with the apply-existing flags of these names.
type Allowed struct {
	// ForceConflicts takes over fields even if their owners would set them back, TakeFrom only from these
	// managers.
	ForceConflicts bool     `json:"forceConflicts,omitempty"`
	TakeFrom       []string `json:"takeFrom,omitempty"`
	// IncludeManaged also writes objects whose manager may revert the change.
	IncludeManaged bool `json:"includeManaged,omitempty"`
	// SkipRejected skips rejected objects, instead of writing nothing.
	SkipRejected bool `json:"skipRejected,omitempty"`
}

// Allow adds the permissions given when a run was started.
func (a *Allowed) Allow(before Allowed) {
	a.ForceConflicts = a.ForceConflicts || before.ForceConflicts
	a.TakeFrom = slices.Concat(a.TakeFrom, before.TakeFrom)
	a.IncludeManaged = a.IncludeManaged || before.IncludeManaged
	a.SkipRejected = a.SkipRejected || before.SkipRejected
}

// String returns the flags as typed.
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

// record is one line: exactly one field is set.
type record struct {
	Header  *Header     `json:"header,omitempty"`
	Planned *plan.Entry `json:"planned,omitempty"`
	Begin   *begin      `json:"begin,omitempty"`
	Attempt *Attempt    `json:"attempt,omitempty"`
	Result  *Result     `json:"result,omitempty"`
	Resumed *Resumed    `json:"resumed,omitempty"`
	End     *End        `json:"end,omitempty"`

	object string // the planned object, as in the line
}

// begin follows the planned entries: from here on there may be writes. A watch plans more after the End of a
// run.
type begin struct {
	Entries int       `json:"entries"`
	Time    time.Time `json:"time"`
}

// Attempt is recorded before a write request is sent.
type Attempt struct {
	// Entry is the index of the planned entry, from 0.
	Entry       int    `json:"entry"`
	Subresource string `json:"subresource,omitempty"`
	// UID and ResourceVersion guard the request.
	UID             types.UID      `json:"uid,omitempty"`
	ResourceVersion string         `json:"resourceVersion"`
	Method          request.Method `json:"method"`
	// Partial is the current object, and the result of the dry run.
	diff.Partial
	Time time.Time `json:"time"`
}

// Result is recorded after a write, or once it is certain that there will be none.
type Result struct {
	Entry       int    `json:"entry"`
	Subresource string `json:"subresource,omitempty"`
	// Outcome is the outcome of apply: "applied", "unchanged", "failed", ...
	Outcome string `json:"outcome"`
	// Written reports that the server stored the request. ResourceVersion is then the new one, and Partial the
	// object before it and in the server's response, including changes by admission.
	Written         bool      `json:"written,omitempty"`
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	diff.Partial
	// Failed reports that the object is not as wanted; Error is the reason.
	Failed bool `json:"failed,omitempty"`
	// Retries counts the repetitions of the request.
	Retries int `json:"retries,omitempty"`
	// Error is redacted when it is recorded.
	Error string `json:"error,omitempty"`
	// More reports that another request of the same entry follows, for the change to /status.
	More bool      `json:"more,omitempty"`
	Time time.Time `json:"time"`
}

// End is the last record of a finished or cleanly interrupted run. In a watch's journal, further runs follow.
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
