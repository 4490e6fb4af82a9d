package sarif

import "github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"

// The parts of a SARIF log that are written, by section 3 of the standard. What is
// not required is left out where it is empty.

type location struct {
	Physical *physicalLocation `json:"physicalLocation,omitempty"`
	Logical  []logicalLocation `json:"logicalLocations,omitempty"`
}

type physicalLocation struct {
	Artifact artifactLocation `json:"artifactLocation"`
	Region   region           `json:"region"`
}

type artifactLocation struct {
	URI string `json:"uri"`
}

type region struct {
	StartLine int `json:"startLine"`
}

type logicalLocation struct {
	Name               string `json:"name"`
	FullyQualifiedName string `json:"fullyQualifiedName"`
	Kind               string `json:"kind"`
}

type message struct {
	Text string `json:"text"`
}

type result struct {
	RuleID              string            `json:"ruleId"`
	RuleIndex           int               `json:"ruleIndex"`
	Level               string            `json:"level"`
	Message             message           `json:"message"`
	Locations           []location        `json:"locations"`
	PartialFingerprints map[string]string `json:"partialFingerprints"`
	Properties          *resultProperties `json:"properties,omitempty"`
}

type resultProperties struct {
	Outcome  string         `json:"outcome"`
	Fields   []report.Field `json:"fields,omitempty"`
	Notes    []string       `json:"notes,omitempty"`
	Warnings []string       `json:"warnings,omitempty"`
}

type tool struct {
	Driver driver `json:"driver"`
}

type driver struct {
	Name    string       `json:"name"`
	Version string       `json:"version,omitempty"`
	Rules   []descriptor `json:"rules"`
}

type descriptor struct {
	ID         string                `json:"id"`
	Short      message               `json:"shortDescription"`
	Help       message               `json:"help"`
	Properties *descriptorProperties `json:"properties,omitempty"`
}

type descriptorProperties struct {
	Dialect  string   `json:"dialect"`
	Origin   string   `json:"origin,omitempty"`
	Severity string   `json:"severity,omitempty"`
	Tags     []string `json:"tags"`
}

type invocation struct {
	ExecutionSuccessful bool           `json:"executionSuccessful"`
	Notifications       []notification `json:"toolExecutionNotifications,omitempty"`
}

type notification struct {
	Level     string           `json:"level"`
	Message   message          `json:"message"`
	Locations []location       `json:"locations,omitempty"`
	Rule      *descriptorIndex `json:"associatedRule,omitempty"`
}

type descriptorIndex struct {
	ID    string `json:"id"`
	Index int    `json:"index"`
}

type runProperties struct {
	Objects    int `json:"objects"`
	Changed    int `json:"changed"`
	Incomplete int `json:"incomplete"`
	Results    int `json:"results"`
	LeftOut    int `json:"resultsLeftOut"`
}
