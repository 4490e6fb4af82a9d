package journal

import (
	"encoding/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// briefRecord is a record without its contents.
type briefRecord struct {
	Header  *Header     `json:"header"`
	Planned *struct{}   `json:"planned"`
	Begin   *begin      `json:"begin"`
	Attempt *briefWrite `json:"attempt"`
	Result  *briefWrite `json:"result"`
	Resumed *Resumed    `json:"resumed"`
	End     *End        `json:"end"`
}

// briefWrite is what an Attempt and a Result say of an entry's progress.
type briefWrite struct {
	Entry       int    `json:"entry"`
	Subresource string `json:"subresource"`
	Outcome     string `json:"outcome"`
	Written     bool   `json:"written"`
	Failed      bool   `json:"failed"`
	More        bool   `json:"more"`
}

func readBrief(text []byte) (*record, error) {
	var b briefRecord
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, err
	}
	r := &record{Header: b.Header, Begin: b.Begin, Resumed: b.Resumed, End: b.End}
	if b.Planned != nil {
		r.Planned = &plan.Entry{}
	}
	if a := b.Attempt; a != nil {
		r.Attempt = &Attempt{Entry: a.Entry, Subresource: a.Subresource}
	}
	if w := b.Result; w != nil {
		r.Result = &Result{
			Entry: w.Entry, Subresource: w.Subresource, Outcome: w.Outcome,
			Written: w.Written, Failed: w.Failed, More: w.More,
		}
	}
	return r, nil
}
