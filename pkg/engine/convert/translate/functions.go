package translate

import (
	"maps"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// function is a function of Kyverno's JMESPath.
type function struct {
	params       []kinds // 0 for a parameter that may be anything, null included
	variadic     bool
	policiesOnly bool // MutatingAdmissionPolicies do not have it
	decodes      bool // its result has other characters than its arguments
	translate    func(*callOf) (Value, error)
	// refused is why there is no translation, and instead the nearest way.
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
)

// functions are those that expressions may call. The table is never written to.
//
//nolint:gochecknoglobals // an immutable table
var functions map[string]function

func init() { //nolint:gochecknoinits // the table refers to functions that read it
	functions = map[string]function{}
	for _, some := range []map[string]function{queryFunctions(), textFunctions(), dataFunctions(), numberFunctions(), timeFunctions()} {
		maps.Copy(functions, some)
	}
}

// queryFunctions are those that JMESPath has itself.
func queryFunctions() map[string]function {
	texts := []kinds{isString, isString}
	number := []kinds{isNumber}
	anything := []kinds{0}
	return map[string]function{
		"abs":         {params: number, translate: absolute},
		"avg":         {params: []kinds{isList}, translate: average},
		"ceil":        {params: number, policiesOnly: true, translate: rounded("math.ceil")},
		"contains":    {params: []kinds{isList | isString, 0}, translate: contains},
		"ends_with":   {params: texts, translate: relation("endsWith")},
		"floor":       {params: number, policiesOnly: true, translate: rounded("math.floor")},
		"join":        {params: []kinds{isString, isList}, translate: join},
		"keys":        {params: []kinds{isMap}, translate: keys},
		"length":      {params: []kinds{isSized}, translate: length},
		"map":         {params: []kinds{0, isList}, translate: mapList},
		"max":         {params: []kinds{isList}, translate: extreme("max")},
		"max_by":      {params: []kinds{isList, 0}, translate: extremeBy("max")},
		"merge":       {params: []kinds{isMap}, variadic: true, translate: merge},
		"min":         {params: []kinds{isList}, translate: extreme("min")},
		"min_by":      {params: []kinds{isList, 0}, translate: extremeBy("min")},
		"not_null":    {params: anything, variadic: true, translate: notNull},
		"reverse":     {params: []kinds{isList | isString}, translate: reverse},
		"sort":        {params: []kinds{isList}, translate: sortList},
		"sort_by":     {params: []kinds{isList, 0}, translate: sortBy},
		"starts_with": {params: texts, translate: relation("startsWith")},
		"to_array":    {params: anything, translate: toArray},
		"to_number":   {params: anything, translate: toNumber},
		"to_string":   {params: anything, decodes: true, translate: toString},
		"type":        {params: anything, translate: typeName},
		"values":      {params: []kinds{isMap}, translate: func(c *callOf) (Value, error) { return c.values(c.args[0]) }},
	}
}

// textFunctions are those of texts.
func textFunctions() map[string]function {
	text := []kinds{isString}
	texts := []kinds{isString, isString}
	return map[string]function{
		"compare":                   {params: texts, translate: compareTexts},
		"equal_fold":                {params: texts, translate: equalFold},
		"replace":                   {params: []kinds{isString, isString, isString, isNumber}, translate: replace},
		"replace_all":               {params: []kinds{isString, isString, isString}, translate: replace},
		"to_upper":                  {params: text, translate: method("upperAscii")},
		"to_lower":                  {params: text, translate: method("lowerAscii")},
		"trim":                      {params: texts, policiesOnly: true, translate: trim},
		"trim_prefix":               {params: texts, translate: trimPrefix},
		"split":                     {params: texts, translate: split},
		"truncate":                  {params: []kinds{isString, isNumber}, translate: truncate},
		"to_boolean":                {params: text, translate: toBoolean},
		"base64_decode":             {params: text, policiesOnly: true, decodes: true, translate: base64Decode},
		"base64_encode":             {params: text, policiesOnly: true, decodes: true, translate: base64Encode},
		"path_canonicalize":         {refused: reasonNoFunction, instead: "compare the texts with matches()"},
		"sha256":                    {params: text, policiesOnly: true, translate: of("hash.sha256")},
		"sha1":                      {params: text, policiesOnly: true, translate: of("hash.sha1")},
		"md5":                       {params: text, policiesOnly: true, translate: of("hash.md5")},
		"regex_match":               {params: []kinds{isString, isTextNumber}, translate: regexMatch},
		"regex_replace_all":         {params: []kinds{isString, isTextNumber, isTextNumber}, translate: regexReplace(false)},
		"regex_replace_all_literal": {params: []kinds{isString, isTextNumber, isTextNumber}, translate: regexReplace(true)},
		"pattern_match":             {params: []kinds{isString, isTextNumber}, translate: patternMatch},
		"random":                    {refused: reasonEachTime, instead: "MutatingPolicies have random()"},
	}
}

// dataFunctions are those of maps, and of texts that hold data.
func dataFunctions() map[string]function {
	text := []kinds{isString}
	texts := []kinds{isString, isString}
	return map[string]function{
		"label_match":       {params: []kinds{isMap, isMap}, translate: labelMatch},
		"lookup":            {params: []kinds{isMap | isList, isTextNumber}, translate: lookup},
		"items":             {params: []kinds{isMap | isList, isString, isString}, translate: items},
		"object_from_lists": {params: []kinds{isList, isList}, translate: objectFromLists},
		"parse_json":        {params: text, policiesOnly: true, translate: parse("json.unmarshal", "JSON")},
		"parse_yaml":        {params: text, policiesOnly: true, translate: parse("yaml.parse", "YAML")},
		"semver_compare":    {params: texts, translate: semverCompare},
		"x509_decode":       {refused: reasonOther, instead: "MutatingPolicies have x509.decode(), whose fields have other names"},
		"image_normalize":   {refused: reasonOther, instead: "MutatingPolicies have image(), which knows other default registries"},
		"is_external_url":   {refused: reasonNoFunction, instead: "name the hosts that are external, or not, with matches()"},
	}
}

// numberFunctions are those of numbers.
func numberFunctions() map[string]function {
	numbers := []kinds{0, 0} // which may be quantities and durations
	return map[string]function{
		"add":      {params: numbers, translate: arithmetic("+")},
		"subtract": {params: numbers, translate: arithmetic("-")},
		"multiply": {params: numbers, translate: arithmetic("*")},
		"divide":   {params: numbers, translate: arithmetic("/")},
		"modulo":   {params: numbers, translate: arithmetic("%")},
		"sum":      {params: []kinds{isList}, translate: sum},
		"round":    {params: []kinds{isNumber, isNumber}, policiesOnly: true, translate: round},
	}
}

// timeFunctions are those of times.
func timeFunctions() map[string]function {
	text := []kinds{isString}
	texts := []kinds{isString, isString}
	return map[string]function{
		"time_now":      {refused: reasonEachTime, instead: "MutatingPolicies have time.now()"},
		"time_now_utc":  {refused: reasonEachTime, instead: "MutatingPolicies have time.now()"},
		"time_since":    {refused: reasonDurations, instead: "compare timestamp() with time.now() of a MutatingPolicy and duration()"},
		"time_add":      {params: texts, translate: timeAdd},
		"time_parse":    {refused: reasonNoFunction, instead: "timestamp() reads RFC 3339"},
		"time_to_cron":  {params: text, policiesOnly: true, translate: timeToCron},
		"time_utc":      {params: text, translate: timeUTC},
		"time_diff":     {refused: reasonDurations, instead: "compare timestamp() and duration()"},
		"time_before":   {params: texts, translate: timeOrder("<")},
		"time_after":    {params: texts, translate: timeOrder(">")},
		"time_between":  {params: []kinds{isString, isString, isString}, translate: timeBetween},
		"time_truncate": {params: texts, policiesOnly: true, translate: timeTruncate},
	}
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
