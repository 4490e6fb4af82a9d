package translate

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	gojmespath "github.com/kyverno/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// function is a JMESPath function of Kyverno.
type function struct {
	params       []kinds // 0: anything, including null
	variadic     bool
	policiesOnly bool // not available in MutatingAdmissionPolicies
	decodes      bool // the result may contain other characters than the arguments
	translate    func(*callOf) Value
	// refused is the reason for no translation, instead the closest alternative.
	refused, instead string
}

const (
	isSized      = isString | isList | isMap
	isTextNumber = isString | isNumber
)

// The reasons why functions are refused.
const (
	reasonOther     = "CEL's function gives another result"
	reasonEachTime  = "it gives another value in every evaluation"
	reasonDurations = "CEL writes durations in seconds"
	reasonDenies    = "it fails for a text that it cannot read, so that the request would be denied, where Kyverno's rule changes nothing"
)

// functions are the callable functions. The table is never written to.
//
//nolint:gochecknoglobals // an immutable table
var functions map[string]function

func init() { //nolint:gochecknoinits,funlen // the table refers to functions that read it
	anything, number, list, maps := []kinds{0}, []kinds{isNumber}, []kinds{isList}, []kinds{isMap}
	text, texts, three := []kinds{isString}, []kinds{isString, isString}, []kinds{isString, isString, isString}
	numbers, by := []kinds{0, 0}, []kinds{isList, 0} // the numbers may be quantities or durations
	pattern, patterns := []kinds{isString, isTextNumber}, []kinds{isString, isTextNumber, isTextNumber}
	functions = map[string]function{
		// JMESPath's own functions.
		"abs":         {params: number, translate: absolute},
		"avg":         {params: list, translate: average},
		"ceil":        {params: number, policiesOnly: true, translate: rounded("math.ceil")},
		"contains":    {params: []kinds{isList | isString, 0}, translate: contains},
		"ends_with":   {params: texts, translate: ask("endsWith")},
		"floor":       {params: number, policiesOnly: true, translate: rounded("math.floor")},
		"join":        {params: []kinds{isString, isList}, translate: join},
		"keys":        {params: maps, translate: keys},
		"length":      {params: []kinds{isSized}, translate: length},
		"map":         {params: []kinds{0, isList}, translate: mapList},
		"max":         {params: list, translate: extreme("max")},
		"max_by":      {params: by, translate: extremeBy("max")},
		"merge":       {params: maps, variadic: true, translate: merge},
		"min":         {params: list, translate: extreme("min")},
		"min_by":      {params: by, translate: extremeBy("min")},
		"not_null":    {params: anything, variadic: true, translate: notNull},
		"reverse":     {params: []kinds{isList | isString}, translate: reverse},
		"sort":        {params: list, translate: sortList},
		"sort_by":     {params: by, translate: sortBy},
		"starts_with": {params: texts, translate: ask("startsWith")},
		"to_array":    {params: anything, translate: toArray},
		"to_number":   {params: anything, translate: toNumber},
		"to_string":   {params: anything, decodes: true, translate: toString},
		"type":        {params: anything, translate: typeName},
		"values":      {params: maps, translate: func(c *callOf) Value { return c.values(c.args[0]) }},

		// Functions of strings.
		"compare": {params: texts, translate: plainly(Number, func(_ *callOf, a ...expr.Expr) expr.Expr {
			return expr.Cond(expr.Equal(a[0], a[1]), expr.Int(0),
				expr.Cond(expr.Binary("<", a[0], a[1]), expr.Int(-1), expr.Int(1)))
		})},
		"equal_fold":    {params: texts, translate: equalFold},
		"replace":       {params: []kinds{isString, isString, isString, isNumber}, translate: replace},
		"replace_all":   {params: three, translate: replace},
		"to_upper":      {params: text, translate: method("upperAscii")},
		"to_lower":      {params: text, translate: method("lowerAscii")},
		"trim":          {params: texts, policiesOnly: true, translate: trim},
		"trim_prefix":   {params: texts, translate: trimPrefix},
		"split":         {params: texts, translate: plainly(ListOf(Text), func(_ *callOf, a ...expr.Expr) expr.Expr { return expr.Method(a[0], "split", a[1]) })},
		"truncate":      {params: []kinds{isString, isNumber}, translate: truncate},
		"to_boolean":    {params: text, translate: toBoolean},
		"base64_decode": {params: text, policiesOnly: true, decodes: true, translate: base64Decode},
		"base64_encode": {
			params: text, policiesOnly: true, decodes: true,
			translate: plainly(Type{kinds: isString, form: PlainText}, func(_ *callOf, a ...expr.Expr) expr.Expr {
				return expr.Call("base64.encode", expr.Call("bytes", a[0]))
			}),
		},
		"path_canonicalize":         {refused: reasonNoFunction, instead: "compare the texts with matches()"},
		"sha256":                    {params: text, policiesOnly: true, translate: called("hash.sha256", Name)},
		"sha1":                      {params: text, policiesOnly: true, translate: called("hash.sha1", Name)},
		"md5":                       {params: text, policiesOnly: true, translate: called("hash.md5", Name)},
		"regex_match":               {params: pattern, translate: regexMatch},
		"regex_replace_all":         {params: patterns, translate: regexReplace(false)},
		"regex_replace_all_literal": {params: patterns, translate: regexReplace(true)},
		"pattern_match":             {params: pattern, translate: patternMatch},
		"random":                    {refused: reasonEachTime, instead: "MutatingPolicies have random()"},

		// Functions of maps, and of strings with encoded data.
		"label_match":       {params: []kinds{isMap, isMap}, translate: labelMatch},
		"lookup":            {params: []kinds{isMap | isList, isTextNumber}, translate: lookup},
		"items":             {params: []kinds{isMap | isList, isString, isString}, translate: items},
		"object_from_lists": {params: []kinds{isList, isList}, translate: objectFromLists},
		"parse_json":        {params: text, translate: onlyConstants("MutatingPolicies have json.unmarshal() for texts that are surely JSON")},
		"parse_yaml":        {params: text, translate: onlyConstants("MutatingPolicies have yaml.parse() for texts that are surely YAML")},
		"semver_compare":    {params: texts, translate: semverCompare},
		"x509_decode":       {refused: reasonOther, instead: "MutatingPolicies have x509.decode(), whose fields have other names"},
		"image_normalize":   {refused: reasonOther, instead: "MutatingPolicies have image(), which knows other default registries"},
		"is_external_url":   {refused: reasonNoFunction, instead: "name the hosts that are external, or not, with matches()"},

		// Functions of numbers.
		"add":      {params: numbers, translate: arithmetic("+")},
		"subtract": {params: numbers, translate: arithmetic("-")},
		"multiply": {params: numbers, translate: arithmetic("*")},
		"divide":   {params: numbers, translate: arithmetic("/")},
		"modulo":   {params: numbers, translate: arithmetic("%")},
		"sum":      {params: list, translate: sum},
		"round":    {params: []kinds{isNumber, isNumber}, policiesOnly: true, translate: round},

		// Functions of times.
		"time_now":      {refused: reasonEachTime, instead: "MutatingPolicies have time.now()"},
		"time_now_utc":  {refused: reasonEachTime, instead: "MutatingPolicies have time.now()"},
		"time_since":    {refused: reasonDurations, instead: "compare timestamp() with time.now() of a MutatingPolicy and duration()"},
		"time_add":      {params: texts, translate: timeAdd},
		"time_parse":    {refused: reasonNoFunction, instead: "timestamp() reads RFC 3339"},
		"time_to_cron":  {params: text, policiesOnly: true, translate: plainly(Text, func(c *callOf, _ ...expr.Expr) expr.Expr { return expr.Call("time.toCron", c.time(0)) })},
		"time_utc":      {params: text, translate: plainly(Text, func(c *callOf, _ ...expr.Expr) expr.Expr { return expr.Call("string", c.time(0)) })},
		"time_diff":     {refused: reasonDurations, instead: "compare timestamp() and duration()"},
		"time_before":   {params: texts, translate: plainly(Boolean, func(c *callOf, _ ...expr.Expr) expr.Expr { return expr.Binary("<", c.time(0), c.time(1)) })},
		"time_after":    {params: texts, translate: plainly(Boolean, func(c *callOf, _ ...expr.Expr) expr.Expr { return expr.Binary(">", c.time(0), c.time(1)) })},
		"time_between":  {params: three, translate: timeBetween},
		"time_truncate": {params: texts, policiesOnly: true, translate: timeTruncate},
	}
}

// onlyConstants is a function without error handling in CEL: failing strings would deny the request, whereas
// Kyverno's rule would change nothing.
func onlyConstants(instead string) func(*callOf) Value {
	return func(c *callOf) Value { panic(unsupported(c.name, reasonDenies, instead)) }
}

// plainly is a function whose arguments must all exist.
func plainly(t Type, build func(c *callOf, args ...expr.Expr) expr.Expr) func(*callOf) Value {
	return func(c *callOf) Value {
		args := make([]expr.Expr, len(c.args))
		for i := range c.args {
			args[i] = c.args[i].plain
		}
		return Expression(build(c, args...), t)
	}
}

// called is a function with a CEL counterpart.
func called(name string, t Type) func(*callOf) Value {
	return plainly(t, func(_ *callOf, args ...expr.Expr) expr.Expr { return expr.Call(name, args...) })
}

// method is a string method without arguments.
func method(name string) func(*callOf) Value {
	return plainly(Text, func(c *callOf, a ...expr.Expr) expr.Expr {
		if c.args[0].typ.Form() < PathSegment {
			c.Note(c.name + " changes no other letters than a to z and A to Z")
		}
		return expr.Method(a[0], name)
	})
}

func (s *Scope) call(ast gojmespath.ASTNode, on *Value) Value {
	name, _ := ast.Value.(string)
	construct := "the function " + name
	f, ok := functions[name]
	switch {
	case !ok:
		panic(unsupported(construct, reasonNoFunction, ""))
	case f.refused != "":
		panic(unsupported(construct, f.refused, f.instead))
	case f.policiesOnly && s.options.Language != MutatingPolicy:
		panic(unsupported(construct, reasonOnlyPolicies, "write a MutatingPolicy"))
	case len(ast.Children) < len(f.params) || len(ast.Children) > len(f.params) && !f.variadic:
		panic(unsupported(construct, reasonFails, fmt.Sprintf("it takes %d arguments", len(f.params))))
	}
	c := &callOf{Scope: s, name: construct}
	for i, child := range ast.Children {
		if child.NodeType == gojmespath.ASTExpRef {
			c.refs = append(c.refs, child.Children[0])
			c.args = append(c.args, Value{})
			continue
		}
		arg := s.argument(child, on, name == "length")
		arg = arg.forgiving()
		if want := f.params[min(i, len(f.params)-1)]; want != 0 {
			arg = arg.needs(want)
			if arg.isNever() {
				panic(unsupported(construct, reasonFails, "an argument is never of the type that it needs"))
			}
			c.has = allOrNil(c.has, arg.has)
		}
		c.ok = allOrNil(c.ok, arg.lenient)
		c.args = append(c.args, arg)
	}
	if v, ok := c.folded(name); ok {
		return v
	}
	v := f.translate(c)
	if v.typ.can(isString|isList) && !f.decodes {
		v.typ = c.formed(v.typ)
	}
	if has := allOrNil(c.has, v.has); !c.covered && v.has != nil && !expr.Same(has, v.has) {
		v.has, v.opt = has, nil
	} else if !c.covered {
		v.has = has
	}
	v.lenient = allOrNil(c.ok, c.has, v.lenient)
	v.strict = v.lenient
	return v
}

// formed is the type of a result composed of the arguments: it has their common form at most.
func (c *callOf) formed(t Type) Type {
	if len(c.refs) > 0 || t.kinds == 0 {
		return t
	}
	form := PathSegment
	for _, arg := range c.args {
		if form = min(form, arg.typ.Form()); !arg.typ.is(isScalar | isList) {
			form = AnyText
		}
	}
	if t.form = max(t.form, form); t.elem != nil {
		elem := c.formed(*t.elem)
		t.elem = &elem
	}
	return t
}

type callOf struct {
	*Scope
	name string // for errors
	args []Value
	refs []gojmespath.ASTNode // the &expression arguments
	has  expr.Expr            // the condition that all arguments exist
	ok   expr.Expr            // the condition that none of them fails
	// covered reports that the result exists only if all arguments do.
	covered bool
}

// folded evaluates a call with constant arguments.
func (c *callOf) folded(name string) (Value, bool) {
	if len(c.refs) > 0 {
		return Value{}, false
	}
	args := make([]string, len(c.args))
	for i, arg := range c.args {
		value, ok := arg.Literal()
		data, err := json.Marshal(value)
		if !ok || err != nil {
			return Value{}, false
		}
		args[i] = "`" + strings.ReplaceAll(string(data), "`", "\\`") + "`"
	}
	call, err := jmespath.Compile(name + "(" + strings.Join(args, ", ") + ")")
	if err != nil {
		return Value{}, false
	}
	value, err := call.Search(jmespath.New(time.Time{}, 0, nil), nil)
	return Constant(value), err == nil
}

// constant is a constant argument as a string.
func (c *callOf) constant(i int) string {
	if value, ok := c.args[i].Literal(); ok {
		if text, isText := value.(string); isText {
			return text
		}
	}
	panic(unsupported(c.name, reasonDynamic, "its second argument has to be a constant"))
}

func (c *callOf) integer(i int, what string) int64 {
	value, _ := c.args[i].Literal()
	n, ok := value.(int64)
	if !ok {
		panic(unsupported(c.name, reasonDynamic, "give "+what+" as a constant"))
	}
	return n
}
