package plan

import (
	"encoding/json"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Impact is an engine.Impact in files.
type Impact engine.Impact

type impactFile struct {
	Code   engine.ImpactCode `json:"code"`
	Text   string            `json:"text"`
	Brief  string            `json:"brief,omitempty"`
	Advice string            `json:"advice,omitempty"`
	Fields [][]string        `json:"fields,omitempty"`
	Owner  string            `json:"owner,omitempty"`
	Pods   int               `json:"pods,omitempty"`
}

// MarshalJSON writes paths as those of fields are.
func (i Impact) MarshalJSON() ([]byte, error) {
	out := impactFile{Code: i.Code, Text: i.Text, Brief: i.Brief, Advice: i.Advice, Owner: i.Owner, Pods: i.Pods}
	for _, p := range i.Fields {
		elements, err := engine.PathElements(p)
		if err != nil {
			return nil, err
		}
		out.Fields = append(out.Fields, elements)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (i *Impact) UnmarshalJSON(text []byte) error {
	var in impactFile
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*i = Impact{Code: in.Code, Text: in.Text, Brief: in.Brief, Advice: in.Advice, Owner: in.Owner, Pods: in.Pods}
	for _, elements := range in.Fields {
		p, err := engine.ParsePathElements(elements)
		if err != nil {
			return fmt.Errorf("impact %s: %w", in.Code, err)
		}
		i.Fields = append(i.Fields, p)
	}
	return nil
}
