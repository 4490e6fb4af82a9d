package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// rbacFlags has the flags of rbac.
type rbacFlags struct {
	flags.Evaluate
	For string
	// Validation is the preview's.
	Validation string
	Watch      flags.Watch
	Name       string
	// Users, Groups and ServiceAccounts get the roles, the latter as NAMESPACE:NAME.
	Users, Groups, ServiceAccounts []string
	Output                         string
	// Report has the reports that the run keeps in the cluster.
	Report flags.Report
	// Fixed as in permission.Run.
	Fixed bool
}

// NewRBACCommand is `rbac`: the permissions for a run of policies.
func NewRBACCommand(evaluate flags.Evaluate, name string) *cobra.Command {
	f := rbacFlags{
		Evaluate: evaluate, For: string(permission.Preview), Name: "kubectl-mutate", Output: formats.YAML,
	}
	c := &cobra.Command{
		Use:   "rbac [TYPE | TYPE/NAME ...]",
		Short: "Print the permissions that are needed to preview or apply policies",
		Long: templates.LongDesc(`
			Print the smallest ClusterRole that allows its users to preview the policies; with
			--for explain to explain objects, and with --for apply to apply the changes. With -n or
			--namespaces it is a Role in each of these namespaces, and a ClusterRole for cluster-scoped
			objects. With types and names it covers a run with the same types and names only.

			It covers the kinds that the policies match and change, as the cluster serves them, or
			with --offline as Kubernetes and the CustomResourceDefinitions among files have them;
			namespaces; other objects that policies read; and the exceptions, bindings and settings
			that are installed. What every user may do anyway (discovery, self access reviews) is
			left out. With --user, --group or --serviceaccount, bindings to these are printed, too.
			Nothing is written: pipe it into kubectl apply.

			Exit codes: 0 the roles are complete, 2 there are no roles, 3 some policies are broken
			and not covered by the roles.`),
		Example: templates.Examples(fmt.Sprintf(`
			# The permissions to preview this policy in all namespaces
			%[1]s rbac -p policy.yaml

			# The permissions to save a plan that the server has tried
			%[1]s rbac -p policy.yaml --validate=server

			# Without a cluster, for kinds of Kubernetes and those that these files define
			%[1]s rbac -p policy.yaml --offline --world crds/

			# Let the members of a team apply it in their namespace
			%[1]s rbac -p policy.yaml --for apply -n shop --name label-shop --group shop-team | kubectl apply -f -

			# The permissions to apply it to one object and nothing else
			%[1]s rbac deployment/web -n shop -p policy.yaml --for apply`, name)),
		RunE: func(c *cobra.Command, args []string) error {
			return process.Exit(f.run(c.Context(), args))
		},
	}
	f.Policies.AddFlags(c.Flags())
	f.Policies.AddStrictFlag(c.Flags())
	f.Client.AddFlags(c.Flags())
	f.Objects.AddKindsFlags(c.Flags())
	f.AddQuietFlag(c.Flags())
	c.Flags().StringVar(&f.For, "for", f.For, "What the permissions are for: preview, explain of the types named, or apply.")
	flags.AddValidateFlag(c.Flags(), &f.Validation, `With "server", a preview may send dry runs, as it does with --validate=server or --save: these take the permission to patch, so that its users may write, too.`)
	c.Flags().StringSliceVar(&f.Objects.Namespaces, "namespaces", nil, "Keep to these namespaces, such as --namespaces a,b,c, as a run with the same flag does; with a wildcard, a run lists the objects of all.")
	f.Watch.AddFlag(c.Flags(), "Include what preview --watch, or with --for apply apply-existing --watch, needs in addition.")
	f.Report.AddClusterFlag(c.Flags())
	c.Flags().Lookup("write-reports").Usage = "Include what preview --write-reports needs with this value, FORMAT or FORMAT=NAME."
	c.Flags().StringVar(&f.Name, "name", f.Name, "Name of the roles.")
	c.Flags().StringArrayVar(&f.Users, "user", nil, "Also print bindings of the roles to this user. May be given more than once.")
	c.Flags().StringArrayVar(&f.Groups, "group", nil, "Also print bindings of the roles to this group. May be given more than once.")
	c.Flags().StringArrayVar(&f.ServiceAccounts, "serviceaccount", nil, "Also print bindings of the roles to this service account, NAMESPACE:NAME. May be given more than once.")
	c.Flags().StringVarP(&f.Output, "output", "o", f.Output, "Output format: one of yaml, json.")
	return c
}

// roleName matches the allowed names of roles. A server accepts more, such as spaces.
var roleName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9._:]*[A-Za-z0-9])?$`)

// validate returns an error for flags that contradict each other. Args are as in run.
func (f *rbacFlags) validate(args []string) error {
	if f.Output != formats.YAML && f.Output != formats.JSON {
		return &formats.UnknownFormatError{Format: f.Output, Allowed: []string{formats.YAML, formats.JSON}}
	}
	if !slices.Contains([]permission.Purpose{permission.Preview, permission.Explain, permission.Apply},
		permission.Purpose(f.For)) {
		return fmt.Errorf("--for %q: use preview, explain or apply", f.For)
	}
	explains := f.For == string(permission.Explain)
	switch {
	case explains && len(args) == 0:
		return errors.New("--for explain: name the objects to explain, as TYPE or TYPE/NAME")
	case explains && f.Validation == flags.ValidateServer:
		return errors.New("--for explain: explain sends no dry runs: --validate=server is for preview")
	case explains && f.Watch.On:
		return errors.New("--for explain: explain watches nothing: --watch is for preview and apply")
	case f.For != string(permission.Preview) && f.Report.Written != "":
		return fmt.Errorf("--for %s: only a preview writes reports: leave out --write-reports", f.For)
	case !roleName.MatchString(f.Name):
		return fmt.Errorf("--name %q: must be a name such as label-shop: letters, digits, '-', '.', '_' and ':', the first and the last of them a letter or digit", f.Name)
	}
	return nil
}

// subjects returns the subjects of the roles.
func (f *rbacFlags) subjects() ([]rbacv1.Subject, error) {
	var out []rbacv1.Subject
	for _, name := range f.Users {
		out = append(out, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name})
	}
	for _, name := range f.Groups {
		out = append(out, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name})
	}
	for _, account := range f.ServiceAccounts {
		namespace, name, _ := strings.Cut(account, ":")
		if namespace == "" || name == "" || strings.Contains(name, ":") {
			return nil, fmt.Errorf("--serviceaccount %q: use NAMESPACE:NAME", account)
		}
		out = append(out, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name})
	}
	if i := slices.IndexFunc(out, func(s rbacv1.Subject) bool { return s.Name == "" }); i >= 0 {
		return nil, fmt.Errorf("--%s must not be empty", strings.ToLower(out[i].Kind))
	}
	return out, nil
}

// run prints the roles for a run with the types and names in args, reports the policies that they do not
// cover, and returns the exit code.
func (f *rbacFlags) run(ctx context.Context, args []string) (int, error) {
	subjects, err := f.subjects()
	if err = cmp.Or(f.validate(args), err); err != nil {
		return process.ExitNothing, err
	}
	namespaces := f.Objects.Namespaces
	if f.Config.Namespace != nil && *f.Config.Namespace != "" {
		namespaces = []string{*f.Config.Namespace}
	}
	quiet := f.Quiet
	found, needs, notes, err := f.needs(ctx, args, namespaces)
	if err != nil {
		return process.ExitNothing, err
	}
	var roles []any
	for _, role := range permission.Roles(f.Name, needs, listed(namespaces), subjects) {
		roles = append(roles, role)
	}
	broken := printBroken(&found, "the roles do not cover it", f.Streams.ErrOut)
	if !quiet {
		printNotes(notes, f.Streams.ErrOut)
	}
	return printManifests(f.Output, roles, notes, broken, f.Streams.Out)
}

// printBroken prints the errors of policies with their consequence, and returns their number.
func printBroken(found *factory.Described, so string, errOut io.Writer) int {
	broken := found.List.Errors()
	for _, p := range broken {
		fmt.Fprintf(redact.NewWriter(errOut), "error: %s; %s\n", p, so)
	}
	for _, unknown := range found.Unknown {
		fmt.Fprintf(redact.NewWriter(errOut), "error: %v; %s: give its CustomResourceDefinition with --world, or ask a server\n", unknown, so)
	}
	return len(broken) + len(found.Unknown)
}

// printNotes prints notes for the reader of manifests.
func printNotes(notes []string, errOut io.Writer) {
	for _, note := range notes {
		fmt.Fprintf(redact.NewWriter(errOut), "warning: %s\n", note)
	}
}

// printManifests prints manifests, in YAML with notes for their reader, and returns the exit code for the
// number of broken policies.
func printManifests(format string, objects []any, notes []string, broken int, out io.Writer) (int, error) {
	var err error
	if format == formats.JSON {
		err = permission.PrintJSON(out, objects)
	} else {
		err = permission.PrintYAML(out, objects, notes)
	}
	switch {
	case err != nil:
		return process.ExitNothing, err
	case broken > 0:
		return process.ExitIncomplete, nil
	}
	return process.ExitOK, nil
}

// listed returns the namespaces of roles: nil, for all, if one is a pattern.
func listed(namespaces []string) []string { return (&engine.Scope{Namespaces: namespaces}).Listed() }

// needs reads the policies, and returns the needs of a run in namespaces, or without any in all.
func (f *rbacFlags) needs(ctx context.Context, args,
	namespaces []string) (found factory.Described, needs []permission.Need,
	notes []string, err error,
) {
	f.Quiet = true
	f.Objects.None = f.Objects.None || len(f.Objects.World) > 0
	w, err := factory.Open(&f.Evaluate, false, false)
	if err != nil {
		return found, nil, nil, err
	}
	if found, err = w.Describe(ctx); err != nil {
		return found, nil, nil, err
	}
	if len(found.Descriptions) == 0 && found.List.Broken() == 0 {
		return found, nil, nil, evaluate.ErrNoRules
	}
	var reports []schema.GroupKind // kept in the cluster
	if f.Report.Written != "" {
		written, err := factory.ParseClusterReports(f.Report.Written)
		if err != nil {
			return found, nil, nil, err
		}
		kinds := written.Kinds()
		reports = []schema.GroupKind{kinds[0].GroupKind(), kinds[1].GroupKind()}
	}
	only, err := factory.Resolve(found.Mapper, args)
	if err != nil {
		return found, nil, nil, err
	}
	run := permission.Run{
		Namespaces: listed(namespaces), Reports: reports, Fixed: f.Fixed,
		Rules: found.Descriptions, Served: found.Served, Only: only, Purpose: permission.Purpose(f.For),
		DryRuns: f.Validation == flags.ValidateServer, Watches: f.Watch.On,
		Reads:     found.Reads(f.Policies.FromCluster),
		HasStatus: found.HasStatus,
	}
	needs, notes, err = run.Needs()
	if len(run.Namespaces) < len(namespaces) {
		notes = append(notes, "roles have no wildcards: with one in --namespaces, a run lists the objects of all namespaces, which these roles allow")
	}
	if w.Client == nil && !slices.ContainsFunc(run.Served, func(m *meta.RESTMapping) bool {
		return run.Reads(m.GroupVersionKind.GroupKind())
	}) {
		notes = append(notes, "no server was asked: exceptions and settings of an engine are covered if --world has their CustomResourceDefinitions")
	}
	return found, needs, notes, err
}
