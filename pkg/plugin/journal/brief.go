package journal

import (
	"encoding/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// briefRecord is a record without its contents, which the first format had in another form.
type briefRecord struct {
	record
	Planned *struct{} `json:"planned"`
	Attempt *struct {
		Attempt
		noContents
	} `json:"attempt"`
	Result *struct {
		Result
		noContents
	} `json:"result"`
}

// noContents hides the diff.Partial of a record.
type noContents struct {
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	Fields json.RawMessage `json:"fields"`
}

func readBrief(text []byte) (*record, error) {
	var b briefRecord
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, err
	}
	if b.Planned != nil {
		b.record.Planned = &plan.Entry{}
	}
	if b.Attempt != nil {
		b.record.Attempt = &b.Attempt.Attempt
	}
	if b.Result != nil {
		b.record.Result = &b.Result.Result
	}
	return &b.record, nil
}
