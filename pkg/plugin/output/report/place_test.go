package report_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
)

func TestPlaceOf(t *testing.T) {
	tests := []struct {
		origin string
		want   report.Place
	}{
		{"policies/team.yaml:12", report.Place{Path: "policies/team.yaml", Line: 12}},
		{"./a:b/../c.yaml:1", report.Place{Path: "c.yaml", Line: 1}},
		{"cluster", report.Place{}},
		{"stdin:3", report.Place{}},
		{"https://example.invalid/p.yaml:3", report.Place{}},
		{"team.yaml:0", report.Place{}},
		{"team.yaml:x", report.Place{}},
		{"", report.Place{}},
	}
	for _, tt := range tests {
		if got := report.PlaceOf(tt.origin); got != tt.want {
			t.Errorf("%q: got %+v, want %+v", tt.origin, got, tt.want)
		}
	}
}
