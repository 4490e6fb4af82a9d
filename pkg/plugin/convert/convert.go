package convert

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare/variant"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// convertYAML is the format of -o; a directory of that name is ./yaml.
const convertYAML = "yaml"

// convertAuto makes convert choose the language of each policy.
const convertAuto = "auto"

// defaultConvertVariants is the default number of variants for each policy.
const defaultConvertVariants = 300

// digestLine begins the second line of a file that convert writes, with a digest of the other lines.
const digestLine = "# Digest: sha256:"

// Flags has the flags of convert.
type Flags struct {
	flags.Evaluate
	To        string
	Directory string
	Variants  flags.Variants
	Report    flags.Report
	// Unverified also prints new policies that are not verified.
	Unverified             bool
	ReplicationControllers bool
}

// Options are the parts of a conversion.
type Options struct {
	Conversion
	Directory string // empty for Out
	Out       io.Writer
	Reports   *formats.Reports
	written   map[string]bool // names of files in Directory
	kept      int             // files that are not overwritten
	rows      [][]string      // of the table of rules
}

// NewCommand is `convert`: CEL policies that do the same as ClusterPolicies and Policies.
func NewCommand(evaluate flags.Evaluate, name string) *cobra.Command {
	f := Flags{
		Evaluate: evaluate, To: string(convert.MutatingPolicy),
		Variants: flags.Variants{Variants: defaultConvertVariants},
	}
	c := &cobra.Command{
		Use:   "convert -p OLD [TYPE [NAME ...] | TYPE/NAME ...]",
		Short: "Convert the mutate rules of ClusterPolicies and Policies to CEL policies",
		Long: templates.LongDesc(`
			Print the policies in CEL that do what the mutate rules of ClusterPolicies and Policies do:
			Kyverno's MutatingPolicies, or MutatingAdmissionPolicies of Kubernetes with their bindings.

			What is printed is verified at once. Each new policy is compared with its original on the
			objects at hand, those of -f or, if types, names or -A are given, those of the cluster, and on
			variants: objects that are not there but could be, which the policies themselves suggest.
			What it was verified on stands above the policy, and on standard error. A rule whose new form
			does not do the same is not printed, unless --unverified is given.

			What cannot be said in the new language is reported for each rule, with the field, the reason and
			the nearest way. The other rules are converted. With a directory, what is not converted is
			kept there as a comment, with the reason. A file that was edited since convert wrote it is not
			overwritten.

			Where a rule changes neither an object nor a variant, nothing shows whether its new form does
			the same. It is printed as "not exercised"; objects that it changes, given with -f, test it.

			Exit codes: 0 all rules are converted and exercised, 2 there is none (usage, connection, no
			policy), 3 some are not converted or not exercised, or a file is not overwritten; a table lists
			the rules. 130 interrupted.`),
		Example: templates.Examples(fmt.Sprintf(`
			# To Kyverno's MutatingPolicies, without a cluster
			%[1]s convert -p old/

			# A file for each policy, verified on all objects of the cluster
			%[1]s convert -p old/ -A -o new/

			# With a page for the review of the change: the old policies beside the new ones
			%[1]s convert -p old/ -A -o new/ --report html=convert.html

			# What is installed, as policies of Kubernetes itself where they can say it
			%[1]s convert --from-cluster -A --to auto -o new/`, name)),
		RunE: func(c *cobra.Command, args []string) error {
			return process.RunE(c.Context())(f.ToOptions(c, args))
		},
	}
	f.AddInputFlags(c.Flags())
	c.Flags().StringVar(&f.To, "to", f.To, "Language of the new policies: mutatingpolicy, mutatingadmissionpolicy, or auto, which is the latter unless the former can say more of a policy.")
	c.Flags().StringVarP(&f.Directory, "output", "o", convertYAML, "yaml to print the policies, or a directory for a file for each policy, named after the old one; it is created if it is not there.")
	f.Variants.AddFlags(c.Flags(), "Compare each policy with its original on up to this many variants of objects. Without this flag, on up to 2,000 if a rule changes none of these.")
	f.Report.AddFlags(c.Flags(), formats.ReportNames(output.Options{Converts: true}))
	c.Flags().BoolVar(&f.Unverified, "unverified", false, "Also print what does not do the same as its original, or could not be compared with it.")
	c.Flags().BoolVar(&f.ReplicationControllers, "replication-controllers", false, "Also convert the rules that Kyverno derives for ReplicationControllers, which a MutatingPolicy for Pods does not get by itself.")
	return c
}

// ToOptions returns the options for the flags.
func (f *Flags) ToOptions(c *cobra.Command, args []string) (*Options, error) {
	request, err := f.Objects.Request()
	if err != nil {
		return nil, err
	}
	to, err := f.languages()
	if err != nil {
		return nil, err
	}
	if slices.Contains([]string{"json", "name", "wide"}, f.Directory) {
		return nil, fmt.Errorf("-o %s: must be yaml, or a directory, such as ./%[1]s", f.Directory)
	}
	if err := f.Variants.Check(); err != nil {
		return nil, err
	}
	if err := flags.CheckFiles(c.Flags()); err != nil {
		return nil, err
	}
	// Unless objects are named, no cluster is needed.
	f.Objects.None = !f.Objects.Offline() && !f.Policies.FromCluster && len(args) == 0 &&
		!f.Objects.AllNamespaces && f.Objects.Namespaces == nil && !c.Flags().Changed("namespace")
	w, err := factory.Open(&f.Evaluate, false, false)
	if err != nil {
		return nil, err
	}
	o, err := w.Evaluation(c.Context(), args, request)
	if err != nil {
		return nil, err
	}
	directory := f.Directory
	if directory == convertYAML {
		directory = ""
	}
	options := w.OutputOptions(flags.Output{}, request)
	options.Converts = true
	reports, err := w.Reports(f.Report, options, directory == "" && c.Flags().Changed("output"))
	if err != nil {
		return nil, err
	}
	out := w.Streams.Out
	if reports.Instead() {
		out = io.Discard
	}
	more := f.Variants.Variants
	if !c.Flags().Changed("variants") {
		more = variant.DefaultLimit
	}
	return &Options{
		Conversion: Conversion{
			Options: o, To: to, Variants: f.Variants.Variants, MoreVariants: more, Seed: f.Variants.Seed,
			Unverified:             f.Unverified,
			ReplicationControllers: f.ReplicationControllers,
		},
		Directory: directory, Out: out, Reports: reports,
	}, nil
}

func (f *Flags) languages() ([]convert.Target, error) {
	switch f.To {
	case string(convert.MutatingPolicy), string(convert.MutatingAdmissionPolicy):
		return []convert.Target{convert.Target(f.To)}, nil
	case convertAuto:
		return []convert.Target{convert.MutatingAdmissionPolicy, convert.MutatingPolicy}, nil
	}
	return nil, fmt.Errorf("--to %s: must be %s, %s or %s", f.To, convert.MutatingPolicy,
		convert.MutatingAdmissionPolicy, convertAuto)
}

// Run converts, prints, and returns the exit code.
func (o *Options) Run(ctx context.Context) (int, error) {
	code, err := o.run(ctx)
	return code, errors.Join(err, o.Reports.Discard())
}

func (o *Options) run(ctx context.Context) (int, error) {
	converted, refused, untested, policies, variants, most := 0, 0, 0, 0, 0, o.Variants
	err := o.Conversion.Run(ctx, func(r *Result) error {
		policies++
		converted += len(r.Rules)
		refused += len(r.Refusals)
		variants += r.Verdict.Variants.Compared
		most = max(most, r.Verdict.Variants.Limit)
		if r.Form != nil && (r.Verdict.Untested() || len(r.Verdict.NotExercised()) > 0) {
			untested++
		}
		return errors.Join(o.Reports.Print(reportedConversion(r)), o.print(r, converted > len(r.Rules)))
	})
	switch {
	case process.Interrupted(err):
		return process.ExitInterrupted, errors.New("interrupted: the other policies are not converted")
	case err != nil && policies == 0:
		return process.ExitNothing, err
	case err != nil:
		return process.ExitIncomplete, err
	case policies == 0 && len(o.Unreadable) == 0:
		return process.ExitNothing, errors.New("there is no ClusterPolicy or Policy with a rule that mutates")
	}
	title := fmt.Sprintf("%s of %d converted, of %s", wording.Plural(converted, "rule"), converted+refused, wording.Plural(policies, "policy"))
	problems := preview.PrintProblems(o.Reports, slices.Concat(o.Unreadable, o.Unread.Errs))
	if err := errors.Join(problems, o.Reports.Print(output.Conversion{Title: title}),
		o.Reports.Close()); err != nil {
		return process.ExitIncomplete, err
	}
	o.say("%s\n", title)
	if converted > 0 {
		o.say("compared on %s, of at most %d for each policy (--variants)\n", wording.Plural(variants, "variant"), most)
	}
	if refused+untested+o.kept == 0 && len(o.Unreadable)+len(o.Unread.Errs) == 0 {
		return process.ExitOK, nil
	}
	o.table()
	return process.ExitIncomplete, nil
}

// reportedConversion returns the conversion of a policy for reports.
func reportedConversion(r *Result) output.Converted {
	old, _ := yaml.Marshal(source(r.Document.Object()))
	out := output.Converted{
		Policy: nameOf(r.Document), Origin: r.Document.Origin,
		Old: redact.EscapeLines(string(old)), Verdict: "not converted", Notes: r.Notes,
	}
	for _, refusal := range r.Refusals {
		out.Refused = append(out.Refused, strings.TrimPrefix(notConverted(refusal), "Not converted: "))
	}
	if r.Form != nil {
		out.New, out.Verdict, out.Exercised = redact.EscapeLines(r.Form.String()), r.Verdict.String(),
			r.Verdict.Summary
		for i := range out.Exercised.Rules[compare.New] {
			out.Exercised.Rules[compare.New][i].Rule.Origin = "" // no file yet
		}
	}
	return out
}

// print writes the new policies, and reports on the old one.
func (o *Options) print(r *Result, more bool) error {
	object := r.Document.Object()
	by := " by kubectl-mutate " + process.Release()
	name := nameOf(r.Document)
	for _, warning := range r.Warnings {
		o.say("%s\n", warning)
	}
	for _, refusal := range r.Refusals {
		rule := ""
		if refusal.Rule != "" {
			rule = "/" + refusal.Rule
		}
		at := engine.CompileError{Origin: r.Document.Origin, Line: refusal.Line}
		fmt.Fprintf(o.ErrOut, "not converted: %s: %s%s: %v\n", at.Place(), name, rule, refusal)
	}
	o.row(r)
	if r.Form == nil {
		if o.Directory == "" {
			return nil
		}
		return o.write(object, commented("Not converted from "+name+by)+unconverted(r))
	}
	o.say("converted: %s: %s: %s: %s%s\n", r.Document.Origin, name, strings.Join(r.Rules, ", "), o.chosen(r), r.Verdict.String())
	o.comment(r, "Converted from "+name+by+": "+r.Verdict.String()+".")
	o.comment(r, "Needs "+r.Form.Needs()+".")
	for _, note := range r.Notes {
		o.say("note: %s: %s: %s\n", r.Document.Origin, name, note)
		o.comment(r, "Note: "+note+".")
	}
	for _, refusal := range r.Refusals {
		if o.Directory == "" {
			o.comment(r, notConverted(refusal))
		}
	}
	text := r.Form.String()
	if o.Directory == "" {
		if more {
			text = "---\n" + text
		}
		_, err := io.WriteString(o.Out, text)
		if errors.Is(err, syscall.EPIPE) { // nobody reads it any more, as with `| head`; reports are still written
			o.Out, err = io.Discard, nil
		}
		return err
	}
	return o.write(object, text+unconverted(r))
}

// write writes the file of a policy, unless convert has not written the existing one, or it was edited
// since.
func (o *Options) write(policy *unstructured.Unstructured, text string) error {
	if err := os.MkdirAll(o.Directory, 0o777); err != nil {
		return err
	}
	path := o.path(file.PlainName(policy.GetNamespace()+"-"+policy.GetName()) + ".yaml")
	if err := checkOverwrite(path); err != nil {
		o.kept++
		fmt.Fprintf(o.ErrOut, "error: %v\n", err)
		return nil
	}
	first, rest, _ := strings.Cut(text, "\n")
	return file.Replace(path, file.Shared, []byte(first+"\n"+digestLine+digest(first, rest)+"\n"+rest))
}

// digest returns the digest of a file without its second line.
func digest(first, rest string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(first+"\n"+rest)))
}

// unconverted returns as comments the reasons why rules are not converted, with the rules, or the whole
// policy if no rule is converted.
func unconverted(r *Result) string {
	var b strings.Builder
	object := r.Document.Object()
	rules, _, _ := unstructured.NestedSlice(object.Object, "spec", "rules")
	original := func(v any) {
		if text, err := yaml.Marshal(v); err == nil {
			b.WriteString(commented(string(text)))
		}
	}
	for _, refusal := range r.Refusals {
		b.WriteString(commented(notConverted(refusal)))
		for _, raw := range rules {
			if rule, _ := raw.(map[string]any); r.Form != nil && rule["name"] == refusal.Rule {
				original([]any{rule})
			}
		}
	}
	if r.Form == nil {
		original(source(object))
	}
	return b.String()
}

// source returns a policy without what a server adds.
func source(policy *unstructured.Unstructured) map[string]any {
	metadata := map[string]any{}
	for _, key := range []string{"name", "namespace", "labels", "annotations"} {
		if value, ok, _ := unstructured.NestedFieldNoCopy(policy.Object, "metadata", key); ok {
			metadata[key] = value
		}
	}
	return map[string]any{
		"apiVersion": policy.GetAPIVersion(), "kind": policy.GetKind(),
		"metadata": metadata, "spec": policy.Object["spec"],
	}
}

func notConverted(refusal *convert.Refusal) string {
	rule := ""
	if refusal.Rule != "" {
		rule = "rule " + refusal.Rule + ": "
	}
	return fmt.Sprintf("Not converted: %s%v", rule, refusal)
}

// commented returns a string as comments. Nothing in it ends them.
func commented(text string) string {
	return "# " + strings.ReplaceAll(strings.TrimRight(redact.EscapeLines(text), "\n"), "\n", "\n# ") + "\n"
}

// row adds the rules of a policy to the table.
func (o *Options) row(r *Result) {
	policy := strings.TrimPrefix(r.Document.Key.Namespace+"/"+r.Document.Key.Name, "/")
	idle := r.Verdict.Summary.NotExercised(compare.Old)
	for _, rule := range r.Rules {
		objects, variants, result := 0, 0, "verified"
		for i := range r.Verdict.Rules[compare.Old] {
			if e := &r.Verdict.Rules[compare.Old][i]; e.Written.Rule == rule {
				objects, variants = objects+e.Outcomes[engine.Changed], variants+e.Variants
			}
		}
		switch {
		case !r.Verdict.Same() && !r.Verdict.Untested():
			result = "not verified"
		case slices.ContainsFunc(idle, func(e compare.Exercise) bool { return e.Written.Rule == rule }):
			result = "not exercised"
		}
		o.rows = append(o.rows,
			[]string{policy + "/" + rule, result, wording.Number(objects), wording.Number(variants)})
	}
	for _, refusal := range r.Refusals {
		o.rows = append(o.rows,
			[]string{strings.TrimSuffix(policy+"/"+refusal.Rule, "/"), "not converted", "-", "-"})
	}
}

// table prints the result for each rule.
func (o *Options) table() {
	if o.Quiet {
		return
	}
	rows := [][]string{{"POLICY/RULE", "RESULT", "OBJECTS CHANGED", "VARIANTS CHANGED"}}
	for _, row := range o.rows {
		row[0] = engine.Shorten(redact.EscapeLine(row[0]), 90)
		rows = append(rows, row)
	}
	fmt.Fprint(o.ErrOut, wording.Table(rows))
}

// comment adds a comment above the new policies.
func (o *Options) comment(r *Result, text string) {
	r.Form.Comment(redact.EscapeLines(text))
}

// chosen says which language --to auto chose for a policy, and why not the other; empty for another --to.
func (o *Options) chosen(r *Result) string {
	if len(o.To) == 1 {
		return ""
	}
	if r.To == convert.MutatingAdmissionPolicy || len(r.Before) == 0 {
		return fmt.Sprintf("to %s: ", r.To)
	}
	return fmt.Sprintf("to %s, since not to %s (%v): ", r.To, convert.MutatingAdmissionPolicy, r.Before[0])
}

// say prints a message that is not an error.
func (o *Options) say(format string, args ...any) {
	if !o.Quiet {
		fmt.Fprintf(o.ErrOut, format, args...)
	}
}

// path returns the path of a file that this run has not written yet.
func (o *Options) path(name string) string {
	if o.written == nil {
		o.written = map[string]bool{}
	}
	out := name
	for i := 2; o.written[out]; i++ {
		out = fmt.Sprintf("%s-%d.yaml", strings.TrimSuffix(name, ".yaml"), i)
	}
	o.written[out] = true
	return filepath.Join(o.Directory, out)
}

// checkOverwrite returns an error for a file that convert has not written, or that was edited since.
func checkOverwrite(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file and is not overwritten; name another directory with -o", path)
	case err != nil:
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	second, rest, _ := strings.Cut(rest, "\n")
	switch sum, written := strings.CutPrefix(second, digestLine); {
	case !written:
		return fmt.Errorf("%s was not written by convert and is not overwritten; name another directory with -o", path)
	case sum != digest(first, rest):
		return fmt.Errorf("%s was edited since convert wrote it and is not overwritten; delete it, or name another directory with -o", path)
	}
	return nil
}
