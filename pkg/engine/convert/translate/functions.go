package translate

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// function is a function of Kyverno's JMESPath.
type function struct {
	params       []kinds // 0 for a parameter that may be anything, null included
	translate    func(*callOf) (Value, error)
	variadic     bool
	policiesOnly bool // MutatingAdmissionPolicies do not have it
	decodes      bool // its result has other characters than its arguments
}

const (
	isSized      = isString | isList | isMap
	isTextNumber = isString | isNumber
)

// functions are those that expressions may call. The table is never written to.
//
//nolint:gochecknoglobals // an immutable table
var functions map[string]function

func init() { //nolint:gochecknoinits // the table refers to functions that read it
	text, texts := []kinds{isString}, []kinds{isString, isString}
	number, numbers := []kinds{isNumber}, []kinds{0, 0} // which may be quantities and durations
	list, anything := []kinds{isList}, []kinds{0}
	functions = map[string]function{
		"abs":         {params: number, translate: absolute},
		"ceil":        {params: number, policiesOnly: true, translate: rounded("math.ceil")},
		"contains":    {params: []kinds{isList | isString, 0}, translate: contains},
		"ends_with":   {params: texts, translate: relation("endsWith")},
		"floor":       {params: number, policiesOnly: true, translate: rounded("math.floor")},
		"join":        {params: []kinds{isString, isList}, translate: join},
		"keys":        {params: []kinds{isMap}, translate: keys},
		"length":      {params: []kinds{isSized}, translate: length},
		"max":         {params: list, translate: extreme("max")},
		"merge":       {params: []kinds{isMap}, variadic: true, translate: merge},
		"min":         {params: list, translate: extreme("min")},
		"not_null":    {params: anything, variadic: true, translate: notNull},
		"reverse":     {params: []kinds{isList | isString}, translate: reverse},
		"sort":        {params: list, translate: sortList},
		"sort_by":     {params: []kinds{isList, 0}, translate: sortBy},
		"starts_with": {params: texts, translate: relation("startsWith")},
		"to_number":   {params: anything, translate: toNumber},
		"to_string":   {params: anything, decodes: true, translate: toString},
		"values":      {params: []kinds{isMap}, translate: func(c *callOf) (Value, error) { return c.values(c.args[0]) }},

		"base64_decode":             {params: text, policiesOnly: true, decodes: true, translate: base64Decode},
		"base64_encode":             {params: text, policiesOnly: true, decodes: true, translate: base64Encode},
		"equal_fold":                {params: texts, translate: equalFold},
		"md5":                       {params: text, policiesOnly: true, translate: of("hash.md5")},
		"pattern_match":             {params: []kinds{isString, isTextNumber}, translate: patternMatch},
		"regex_match":               {params: []kinds{isString, isTextNumber}, translate: regexMatch},
		"regex_replace_all":         {params: []kinds{isString, isTextNumber, isTextNumber}, translate: regexReplace(false)},
		"regex_replace_all_literal": {params: []kinds{isString, isTextNumber, isTextNumber}, translate: regexReplace(true)},
		"replace":                   {params: []kinds{isString, isString, isString, isNumber}, translate: replace},
		"replace_all":               {params: []kinds{isString, isString, isString}, translate: replace},
		"sha1":                      {params: text, policiesOnly: true, translate: of("hash.sha1")},
		"sha256":                    {params: text, policiesOnly: true, translate: of("hash.sha256")},
		"split":                     {params: texts, translate: split},
		"to_boolean":                {params: text, translate: toBoolean},
		"to_lower":                  {params: text, translate: method("lowerAscii")},
		"to_upper":                  {params: text, translate: method("upperAscii")},
		"trim":                      {params: texts, policiesOnly: true, translate: trim},
		"trim_prefix":               {params: texts, translate: trimPrefix},
		"truncate":                  {params: []kinds{isString, isNumber}, translate: truncate},

		"add":               {params: numbers, translate: arithmetic("+")},
		"divide":            {params: numbers, translate: arithmetic("/")},
		"items":             {params: []kinds{isMap | isList, isString, isString}, translate: items},
		"lookup":            {params: []kinds{isMap | isList, isTextNumber}, translate: lookup},
		"modulo":            {params: numbers, translate: arithmetic("%")},
		"multiply":          {params: numbers, translate: arithmetic("*")},
		"object_from_lists": {params: []kinds{isList, isList}, translate: objectFromLists},
		"parse_json":        {params: text, policiesOnly: true, translate: parse("json.unmarshal", "JSON")},
		"parse_yaml":        {params: text, policiesOnly: true, translate: parse("yaml.parse", "YAML")},
		"subtract":          {params: numbers, translate: arithmetic("-")},
		"sum":               {params: list, translate: sum},
	}
}

// The reasons why functions are refused.
const (
	reasonOther     = "CEL's function gives another result"
	reasonEachTime  = "it gives another value in every evaluation"
	reasonDurations = "CEL writes durations in seconds"
	reasonTimes     = "CEL fails for a text that is no time"
	insteadOfTimes  = "guard timestamp() and duration() by a condition that is written by hand"
)

// untranslated are the reasons why the other functions are refused, and the nearest ways.
//
//nolint:gochecknoglobals // an immutable table
var untranslated = map[string][2]string{
	"avg":               {reasonNoFunction, "divide the sum by the size"},
	"compare":           {reasonNoFunction, "compare the texts with < and >"},
	"image_normalize":   {reasonOther, "MutatingPolicies have image(), which knows other default registries"},
	"is_external_url":   {reasonNoFunction, "name the hosts that are external, or not, with matches()"},
	"label_match":       {reasonNoFunction, "compare the labels one by one"},
	"map":               {"CEL's function does not keep nulls", "write a projection: list[].field"},
	"max_by":            {reasonNoFunction, "take the last one of sort_by"},
	"min_by":            {reasonNoFunction, "take the first one of sort_by"},
	"path_canonicalize": {reasonNoFunction, "compare the texts with matches()"},
	"random":            {reasonEachTime, "MutatingPolicies have random()"},
	"round":             {reasonFraction, "MutatingPolicies have math.round()"},
	"semver_compare":    {"CEL knows no ranges of versions", "compare semver(a) with compareTo()"},
	"time_add":          {reasonTimes, insteadOfTimes},
	"time_after":        {reasonTimes, insteadOfTimes},
	"time_before":       {reasonTimes, insteadOfTimes},
	"time_between":      {reasonTimes, insteadOfTimes},
	"time_diff":         {reasonDurations, "compare timestamp() and duration()"},
	"time_now":          {reasonEachTime, "MutatingPolicies have time.now()"},
	"time_now_utc":      {reasonEachTime, "MutatingPolicies have time.now()"},
	"time_parse":        {reasonNoFunction, "timestamp() reads RFC 3339"},
	"time_since":        {reasonDurations, "compare timestamp() with time.now() of a MutatingPolicy and duration()"},
	"time_to_cron":      {reasonTimes, insteadOfTimes},
	"time_truncate":     {reasonTimes, insteadOfTimes},
	"time_utc":          {reasonTimes, insteadOfTimes},
	"to_array":          {reasonUnknownType, "write a list"},
	"type":              {reasonOther, "CEL's types have other names"},
	"x509_decode":       {reasonOther, "MutatingPolicies have x509.decode(), whose fields have other names"},
}

// method is a method of a text without arguments.
func method(name string) func(*callOf) (Value, error) {
	return func(c *callOf) (Value, error) {
		return c.emptyToEmpty(func(text expr.Expr) expr.Expr { return expr.Method(text, name) })
	}
}

// of is a hash of one text.
func of(name string) func(*callOf) (Value, error) {
	return func(c *callOf) (Value, error) { return result(expr.Call(name, c.args[0].plain), Name) }
}
