package archtest

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// otherValues are the rows of docs/limits.md of which a value is no constant of the package that
// they name, with the reason.
var otherValues = map[string]string{
	"Units of CEL cost": "those of an API server, from its library",
	"Redirects to another host, port or scheme, or out of the path of the API server's URL": "none is followed, so that nothing is counted",
}

// noLimits are constants that are named as limits are, and bound nothing that a policy, a file or a server
// could make large.
var noLimits = map[string]string{
	"pkg/engine/kyverno maxRuleName":                   "of the names that Kubernetes takes",
	"pkg/engine/gatekeeper maxName":                    "of the names that Kubernetes takes",
	"pkg/plugin/job maxLabel":                          "of the names that Kubernetes takes",
	"pkg/plugin/job maxCronJobName":                    "of the names that Kubernetes takes",
	"pkg/plugin/job maxClaimName":                      "of the names that Kubernetes takes",
	"pkg/engine maxCached":                             "what is remembered to be quick; the rest is made again",
	"pkg/engine maxCachedBytes":                        "what is remembered to be quick; the rest is made again",
	"pkg/engine/packed maxKnown":                       "what is remembered to be quick; the rest is made again",
	"pkg/engine/packed maxKnownText":                   "what is remembered to be quick; the rest is made again",
	"pkg/plugin/output/objectdiff maxScalars":          "what is remembered to be quick; the rest is made again",
	"pkg/plugin/output/objectdiff maxScalarLength":     "what is remembered to be quick; the rest is made again",
	"pkg/plugin/input maxReserved":                     "what is remembered to be quick; the rest is made again",
	"pkg/engine/diff maxScanned":                       "what is remembered to be quick; the rest is made again",
	"pkg/engine maxTypos":                              "how far is looked for what a message or a note says beside",
	"pkg/engine/evaluation maxCompared":                "how far is looked for what a message or a note says beside",
	"pkg/plugin/impact maxWriters":                     "how far is looked for what a message or a note says beside",
	"pkg/engine/compare maxReasons":                    "how far is looked for what a message or a note says beside",
	"pkg/engine/compare/variant maxSelected":           "how variants are derived, of which there are few",
	"pkg/engine/compare/variant maxDepth":              "how variants are derived, of which there are few",
	"pkg/engine/compare/variant maxPointer":            "how variants are derived, of which there are few",
	"pkg/engine/cel maxVisited":                        "what is masked, not what is taken",
	"pkg/plugin/output/objectdiff DefaultContextLines": "no limit: a default, a fact or a level",
	"pkg/plugin/transport MaxRatio":                    "no limit: a default, a fact or a level",
	"pkg/plugin/cluster MaxKlogLevel":                  "no limit: a default, a fact or a level",
	"pkg/plugin/preview maxPending":                    "no limit: a default, a fact or a level",
	"pkg/engine/kyverno/jmespath defaultRegistry":      "no limit: a default, a fact or a level",
	"pkg/engine/kyverno/jmespath defaultTag":           "no limit: a default, a fact or a level",
	"pkg/engine/mutatingpolicy/library defaultRandom":  "no limit: a default, a fact or a level",
	"pkg/plugin/apply DefaultFieldManager":             "no limit: a default, a fact or a level",
	"pkg/plugin/redact maxMarks":                       "no limit: a default, a fact or a level",
}

// Each constant that is named as limits are is in a row of the page.
func TestLimitsAreOnThePage(t *testing.T) {
	text, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	listed, unused := map[limitName]bool{}, maps.Clone(noLimits)
	for _, row := range limitRows(string(text)) {
		for _, name := range row.names {
			listed[name] = true
		}
	}
	found := 0
	err = filepath.WalkDir("../../pkg", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		pkg := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), filepath.FromSlash("../../")))
		for _, name := range limitConstants(t, path) {
			found++
			key := pkg + " " + name
			if noLimits[key] == "" && !listed[limitName{pkg, name}] {
				t.Errorf("%s: docs/limits.md has no row that names %s: add one, or say in noLimits why it needs none", pkg, name)
			}
			delete(unused, key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 100 {
		t.Errorf("found %d limits", found)
	}
	for key := range unused {
		t.Errorf("there is no %s", key)
	}
}

// limitConstants returns the constants of a file with names of limits, outside of functions.
func limitConstants(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		declared, ok := d.(*ast.GenDecl)
		if !ok || declared.Tok != token.CONST {
			continue
		}
		for _, spec := range declared.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if nameOfLimit.MatchString(name.Name) {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

var nameOfLimit = regexp.MustCompile(`^(?:max|Max|default|Default)[A-Z]`)

// Each row of the page names what sets the limit, and has its value.
func TestLimitsAreThoseOfThePage(t *testing.T) {
	text, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]*declarations{}
	rows := limitRows(string(text))
	if len(rows) < 50 {
		t.Fatalf("the page has %d rows", len(rows))
	}
	unused := map[string]bool{}
	for limit := range otherValues {
		unused[limit] = true
	}
	for _, row := range rows {
		delete(unused, row.limit)
		var values []string
		for _, name := range row.names {
			p := packages[name.pkg]
			if p == nil {
				p = declarationsOf(t, filepath.Join("../..", filepath.FromSlash(name.pkg)))
				packages[name.pkg] = p
			}
			value, found := p.value(name.name)
			if !found {
				t.Errorf("%s: %s has no %s", row.limit, name.pkg, name.name)
			}
			if value != nil {
				values = append(values, value.ExactString())
			}
		}
		if _, ok := otherValues[row.limit]; ok {
			continue
		}
		if len(row.names) == 0 {
			t.Errorf("%s: the row names nothing that sets the limit", row.limit)
		}
		if wanted := slices.Sorted(slices.Values(row.values)); !slices.Equal(slices.Compact(wanted), slices.Compact(slices.Sorted(slices.Values(values)))) {
			t.Errorf("%s: the page has the values %s, the code %s", row.limit, wanted, values)
		}
	}
	for limit := range unused {
		t.Errorf("there is no row for %s", limit)
	}
}

func TestLimitRows(t *testing.T) {
	const page = "| limit | value | what happens beyond it | where |\n|---|---|---|---|\n| **Title** | | the rule fails | |\n" +
		"| Bytes | 64 KiB; 1,000, as ever | | `pkg/a`, `maxA`, `B.C`; `pkg/b`, `d` |\n| Time | 1.5 seconds | | `pkg/a` |\n"
	want := []limitRow{
		{"Bytes", []string{"65536", "1000"}, []limitName{{"pkg/a", "maxA"}, {"pkg/a", "B.C"}, {"pkg/b", "d"}}},
		{"Time", []string{"1500000000"}, nil},
	}
	if got := limitRows(page); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	const code = "package a\nconst (a = 2 * b; b = 3 << 10; c = 500 * time.Millisecond; s = \"a\")\nvar l = L{F: 1_000}\nfunc f() {}\n"
	parsed, err := parser.ParseFile(token.NewFileSet(), "a.go", code, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := newDeclarations()
	ast.Inspect(parsed, d.add)
	for name, want := range map[string]string{"a": "6144", "c": "500000000", "L.F": "1000", "s": "<nil> true", "f": "<nil> true", "g": "<nil> false"} {
		value, found := d.value(name)
		if got := fmt.Sprint(value, " ", found); got != want && got != want+" true" {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// limitRow is a row of the page.
type limitRow struct {
	limit  string
	values []string // numbers, in bytes and nanoseconds
	names  []limitName
}

// limitName is a name in a package.
type limitName struct{ pkg, name string }

// limitRows reads the rows of four cells; titles of sections have text in the first alone.
func limitRows(page string) []limitRow {
	var out []limitRow
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || strings.HasPrefix(cells[0], "---") || strings.TrimSpace(cells[3]) == "where" || strings.TrimSpace(cells[1]) == "" {
			continue
		}
		row := limitRow{limit: strings.TrimSpace(cells[0]), values: quantitiesIn(cells[1])}
		pkg := ""
		for _, span := range codeSpan.FindAllStringSubmatch(cells[3], -1) {
			if strings.Contains(span[1], "/") {
				pkg = span[1]
			} else {
				row.names = append(row.names, limitName{pkg, span[1]})
			}
		}
		out = append(out, row)
	}
	return out
}

var (
	quantityText = regexp.MustCompile(`(\d[\d,]*(?:\.\d+)?)(?: (KiB|MiB|GiB|seconds?|minutes?|hours?))?`)
	units        = map[string]int64{
		"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
		"second": int64(time.Second), "seconds": int64(time.Second), "minute": int64(time.Minute), "minutes": int64(time.Minute), "hour": int64(time.Hour), "hours": int64(time.Hour),
	}
)

// quantitiesIn returns the numbers in a text, in the unit of the constants.
func quantitiesIn(text string) []string {
	var out []string
	for _, m := range quantityText.FindAllStringSubmatch(text, -1) {
		number := constant.MakeFromLiteral(strings.ReplaceAll(strings.Trim(m[1], ","), ",", ""), token.FLOAT, 0)
		out = append(out, constant.ToInt(constant.BinaryOp(number, token.MUL, constant.MakeInt64(units[m[2]]))).ExactString())
	}
	return out
}

// declarations are what a package declares.
type declarations struct {
	values map[string]ast.Expr // of constants, and of fields of literals by "Type.Field"
	names  map[string]bool     // everything else
}

func newDeclarations() *declarations {
	return &declarations{values: map[string]ast.Expr{}, names: map[string]bool{}}
}

func declarationsOf(t *testing.T, dir string) *declarations {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no package, %v", dir, err)
	}
	out := newDeclarations()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, out.add)
	}
	return out
}

func (s *declarations) add(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		s.names[n.Name.Name] = true
	case *ast.TypeSpec:
		s.names[n.Name.Name] = true
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if s.names[name.Name] = true; i < len(n.Values) {
				s.values[name.Name] = n.Values[i]
			}
		}
	case *ast.CompositeLit:
		of, _ := n.Type.(*ast.Ident)
		for _, element := range n.Elts {
			if field, ok := element.(*ast.KeyValueExpr); ok && of != nil {
				s.values[fmt.Sprint(of.Name, ".", field.Key)] = field.Value
			}
		}
	}
	return true
}

// value returns the value of a name, nil if it is not a number.
func (s *declarations) value(name string) (constant.Value, bool) {
	x, ok := s.values[name]
	if !ok {
		return nil, s.names[name]
	}
	v := s.eval(x)
	if v == nil || v.Kind() == constant.String || constant.ToInt(v).Kind() != constant.Int {
		return nil, true
	}
	return constant.ToInt(v), true
}

// eval returns the value of an expression of numbers, constants of the package and units of
// time; nil for any other.
func (s *declarations) eval(x ast.Expr) constant.Value {
	switch x := x.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(x.Value, x.Kind, 0)
	case *ast.ParenExpr:
		return s.eval(x.X)
	case *ast.Ident:
		if below, ok := s.values[x.Name]; ok {
			return s.eval(below)
		}
	case *ast.SelectorExpr:
		if unit := units[strings.ToLower(x.Sel.Name)]; unit > 0 {
			return constant.MakeInt64(unit)
		}
		if x.Sel.Name == "Millisecond" {
			return constant.MakeInt64(int64(time.Millisecond))
		}
	case *ast.BinaryExpr:
		a, b := s.eval(x.X), s.eval(x.Y)
		switch {
		case a == nil || b == nil:
		case x.Op == token.SHL:
			n, _ := constant.Uint64Val(b)
			return constant.Shift(a, x.Op, uint(n))
		default:
			return constant.BinaryOp(a, x.Op, b)
		}
	}
	return nil
}
