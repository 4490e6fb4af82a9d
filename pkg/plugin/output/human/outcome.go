package human

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// outcomeStatus is what came of a rule on a target, in the words of Kyverno's
// UpdateRequests.
type outcomeStatus string

// The statuses. Skipped is none of Kyverno's: the target went away or is left to
// whoever manages it, or the run ended before.
const (
	completed outcomeStatus = "Completed"
	failed    outcomeStatus = "Failed"
	skipped   outcomeStatus = "Skipped"
)

func statusOf(r *apply.Result) outcomeStatus {
	switch {
	case r.Outcome == apply.Managed:
		return skipped
	case r.Err != nil, r.Status != nil && r.Status.Err != nil:
		return failed
	case r.Outcome.Reached():
		return completed
	}
	return skipped
}

// outcomeRow is what came of one rule on one target.
type outcomeRow struct {
	rule    engine.RuleRef
	key     engine.ObjectKey
	status  outcomeStatus
	message string
}

// rowsOf has a row for each rule that makes the change.
func rowsOf(r *apply.Result, m *redact.Masker) []outcomeRow {
	rules := r.Rules
	if len(rules) == 0 {
		rules = []engine.RuleRef{{}}
	}
	rows := make([]outcomeRow, len(rules))
	for i, rule := range rules {
		rows[i] = outcomeRow{rule: rule, key: r.Key, status: statusOf(r), message: m.Text(message(r))}
	}
	return rows
}

// message is what the server says, as it says it; where it is not the server that
// objects, what does.
func message(r *apply.Result) string {
	err := r.Err
	if err == nil && r.Status != nil {
		err = r.Status.Err
	}
	var rejected *apply.RejectedError
	switch {
	case errors.As(err, &rejected):
		return rejected.Text
	case err != nil:
		return reasonOf(err).Error()
	case statusOf(r) == completed && r.Outcome == apply.Applied:
		return ""
	}
	return outcomeText(r)
}

// writeRows writes the table.
func writeRows(b *bytes.Buffer, rows []outcomeRow) error {
	if len(rows) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "POLICY\tRULE\tKIND\tNAME\tNAMESPACE\tSTATUS\tMESSAGE")
	for _, r := range rows {
		kind := r.key.Kind
		if r.key.Subresource != "" {
			kind += "/" + r.key.Subresource
		}
		cells := []string{r.rule.Policy, r.rule.Rule, kind, r.key.Name, r.key.Namespace, string(r.status), r.message}
		for i, cell := range cells {
			cells[i] = redact.EscapeLine(cell)
			if cell == "" && i < len(cells)-1 {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	b.WriteString("\n")
	return nil
}

// conflicts gathers, manager by manager, which fields stand in the way.
type conflicts []*conflict

type conflict struct {
	manager, owner string
	objects        int
	fields         []string
	autoscalers    []string
}

// add takes the fields for which an object was not written.
func (c *conflicts) add(r *apply.Result) {
	var of *apply.ConflictError
	if r.Outcome != apply.Conflicted || !errors.As(r.Err, &of) {
		return
	}
	for _, t := range of.Takeovers {
		one := c.of(t)
		one.objects++
		for p := range t.Fields.Leaves().All() {
			if name := engine.PathString(p); !slices.Contains(one.fields, name) {
				one.fields = append(one.fields, name)
			}
		}
		for _, i := range r.Autoscaled {
			if ownsAny(t, i.Fields) && !slices.Contains(one.autoscalers, i.Owner) {
				one.autoscalers = append(one.autoscalers, i.Owner)
			}
		}
	}
}

// ownsAny tells whether a manager owns one of the fields, or a part of it.
func ownsAny(t request.Takeover, fields []fieldpath.Path) bool {
	return slices.ContainsFunc(fields, func(p fieldpath.Path) bool {
		for owned := range t.Fields.Leaves().All() {
			if len(owned) >= len(p) && owned[:len(p)].Equals(p) {
				return true
			}
		}
		return false
	})
}

func (c *conflicts) of(t request.Takeover) *conflict {
	for _, known := range *c {
		if known.owner == t.Owner() {
			return known
		}
	}
	*c = append(*c, &conflict{manager: t.Manager, owner: t.Owner()})
	return (*c)[len(*c)-1]
}

func (c *conflict) flag() string { return "--take-from=" + c.manager }

// write says who owns what, and what to type to take it over.
func (c conflicts) write(b *bytes.Buffer) {
	if len(c) == 0 {
		return
	}
	b.WriteString("Fields that others would set back:\n")
	for _, one := range c {
		fmt.Fprintf(b, "    %s owns %s of %s; to take them over, add %s\n",
			redact.EscapeLine(one.owner), redact.EscapeLine(few(one.fields)), wording.Plural(one.objects, "object"), redact.EscapeLine(one.flag()))
		if len(one.autoscalers) > 0 {
			fmt.Fprintf(b, "        %s will set them back all the same\n", redact.EscapeLine(few(one.autoscalers)))
		}
	}
	b.WriteString("\n")
}

func (c conflicts) report() []reportConflict {
	var out []reportConflict
	for _, one := range c {
		out = append(out, reportConflict{Manager: one.manager, Owner: one.owner, Objects: one.objects, Fields: one.fields, Flag: one.flag(), Autoscalers: one.autoscalers})
	}
	return out
}
