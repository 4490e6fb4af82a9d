package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Impact is one thing that a Change means beyond its fields: Pods that restart, an
// owner that sets the change back, a server that will refuse it.
type Impact struct {
	Code ImpactCode `json:"code"`
	// Text says what, on one line, and Advice what to do about it; either may name
	// fields and objects, never values. Advice is empty where there is nothing to do.
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"`
	// Brief is Text, less what differs among objects that change alike; empty where
	// nothing does.
	Brief string `json:"brief,omitempty"`
	// Fields are those that it is about, in path order.
	Fields Paths `json:"fields,omitempty"`
	// Owner is who owns the fields or the object, where the impact is about that.
	Owner string `json:"owner,omitempty"`
	// Pods counts those that would restart.
	Pods int `json:"pods,omitempty"`
}

// ImpactCode names a kind of Impact, for programs.
type ImpactCode string

// The kinds of Impact.
const (
	ImpactRollout       ImpactCode = "rollout"        // the Pods of a workload restart, now or later
	ImpactManaged       ImpactCode = "managed"        // something else keeps the whole object as it is
	ImpactOwned         ImpactCode = "owned"          // another manager owns fields that change
	ImpactCoOwned       ImpactCode = "co-owned"       // a list element whose owner could not remove it any more
	ImpactAutoscaled    ImpactCode = "autoscaled"     // an autoscaler sets fields that change
	ImpactApplied       ImpactCode = "applied"        // kubectl's client-side apply sets fields that change
	ImpactImmutable     ImpactCode = "immutable"      // the server will refuse the change
	ImpactInvalid       ImpactCode = "invalid"        // the server will refuse a value, by the schema of its kind
	ImpactRefused       ImpactCode = "refused"        // the server refused the change in a dry run
	ImpactAltered       ImpactCode = "altered"        // the server or a webhook made something else of the change in a dry run
	ImpactUntried       ImpactCode = "untried"        // there was no dry run of the change, although one was asked for
	ImpactNotIdempotent ImpactCode = "not-idempotent" // evaluating the result changes it again
	ImpactOverwritten   ImpactCode = "overwritten"    // one rule undoes what another wrote
)

// Refuses reports whether the server would refuse the change.
func (c ImpactCode) Refuses() bool {
	return c == ImpactImmutable || c == ImpactInvalid || c == ImpactRefused
}

// Concerns reports whether it is about a field, about what holds it or about something in it.
func (i *Impact) Concerns(field fieldpath.Path) bool {
	return len(i.Fields) == 0 || slices.ContainsFunc(i.Fields, func(p fieldpath.Path) bool {
		n := min(len(p), len(field))
		return p[:n].Equals(field[:n])
	})
}

// Alike is the Text for several objects that change alike.
func (i *Impact) Alike() string { return cmp.Or(i.Brief, i.Text) }

// Paths are paths that stand in files in structured-merge-diff's notation, as that of a FieldChange does.
type Paths []fieldpath.Path

// MarshalJSON writes the elements of each path.
func (p Paths) MarshalJSON() ([]byte, error) {
	out := make([][]string, len(p))
	for i, path := range p {
		var err error
		if out[i], err = PathElements(path); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Paths) UnmarshalJSON(text []byte) error {
	var in [][]string
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*p = make(Paths, len(in))
	for i, elements := range in {
		var err error
		if (*p)[i], err = ParsePathElements(elements); err != nil {
			return fmt.Errorf("path %d: %w", i, err)
		}
	}
	return nil
}
