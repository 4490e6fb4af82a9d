package plan

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

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

// masked is the impact without what a mask hides: names of fields may be secret.
func (i Impact) masked(text func(string) string, path func(fieldpath.Path) fieldpath.Path) Impact {
	i.Text, i.Brief, i.Advice, i.Owner = text(i.Text), text(i.Brief), text(i.Advice), text(i.Owner)
	fields := make([]fieldpath.Path, len(i.Fields))
	for n, p := range i.Fields {
		fields[n] = path(p)
	}
	i.Fields = fields
	return i
}
