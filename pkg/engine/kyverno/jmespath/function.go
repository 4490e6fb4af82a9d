package jmespath

import (
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// function is an entry of the table: parameters and implementation.
type function struct {
	params []kind
	// variadic lets the last parameter repeat; unchecked allows any number of arguments, as in Kyverno's clock
	// functions.
	variadic, unchecked bool
	call                func(in *Interpreter, args []any) (any, error)
	// notIdempotent is why equal arguments can give another result in another run.
	notIdempotent string
}

// stepsOfCall makes the clock check the time after each call, since functions can be slow on large values.
const stepsOfCall = 1 << 10

// call evaluates and checks the arguments and calls a function. The error is a *CallError of this function or
// of one in an argument, or has a *limit.Error as its reason.
func call(name string, f *function, arguments []node) node {
	return func(in *Interpreter, value any) (any, error) {
		args, err := evaluate(arguments, in, value)
		if err != nil {
			return nil, err
		}
		if err := f.check(args); err != nil {
			return nil, callError(name, err)
		}
		result, err := f.call(in, args)
		if text, ok := result.(string); ok && err == nil {
			err = limit.Size(len(text))
		}
		if err != nil {
			return nil, callError(name, err)
		}
		return result, in.clock.Steps(stepsOfCall)
	}
}

func callError(function string, err error) error {
	var exceeded *limit.Error
	var inner *CallError
	if errors.As(err, &exceeded) || errors.As(err, &inner) {
		return err
	}
	return &CallError{Function: function, Err: err}
}

func (f *function) check(args []any) error {
	if f.unchecked {
		return nil
	}
	if len(args) < len(f.params) || (len(args) > len(f.params) && !f.variadic) {
		return fmt.Errorf("incorrect number of args: %d, expected %d", len(args), len(f.params))
	}
	for i, arg := range args {
		want := f.params[min(i, len(f.params)-1)]
		if !want.admits(arg) {
			return fmt.Errorf("argument #%d is not of type %s", i+1, want)
		}
	}
	return nil
}

// CallError is the failure of a function on its arguments.
type CallError struct {
	Function string
	Err      error
}

// Error names the function and the reason, in Kyverno's words.
func (e *CallError) Error() string {
	return fmt.Sprintf("JMESPath function '%s': %s", e.Function, engine.Shorten(e.Err.Error(), maxReason))
}

// Unwrap returns the reason.
func (e *CallError) Unwrap() error { return e.Err }

func onString[R any](call func(string) R) func(*Interpreter, []any) (any, error) {
	return func(_ *Interpreter, args []any) (any, error) { return call(args[0].(string)), nil }
}

func onStrings[R any](call func(a, b string) R) func(*Interpreter, []any) (any, error) {
	return func(_ *Interpreter, args []any) (any, error) { return call(args[0].(string), args[1].(string)), nil }
}

func onNumber(call func(float64) float64) func(*Interpreter, []any) (any, error) {
	return func(_ *Interpreter, args []any) (any, error) {
		f, _ := Number(args[0])
		return canonical(call(f)), nil
	}
}

// kind is a set of parameter types.
type kind uint

const (
	aString kind = 1 << iota
	aNumber
	anArray
	anObject
	numbers // an array of numbers only
	strs    // an array of strings only
	anExpression
	anything
)

// kindNames are the type names in Kyverno's error messages.
//
//nolint:gochecknoglobals // an immutable table
var kindNames = []struct {
	kind kind
	name string
}{
	{aString, "String"},
	{aNumber, "Number"},
	{anArray, "Array"},
	{anObject, "Object"},
	{numbers, "Array of Numbers"},
	{strs, "Array of Strings"},
	{anExpression, "Expression"},
}

func (k kind) String() string {
	var names []string
	for _, n := range kindNames {
		if k&n.kind != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, " or ")
}

func (k kind) admits(arg any) bool {
	if _, ok := arg.(expressionRef); ok {
		return k&anExpression != 0
	}
	if k&anything != 0 {
		return true
	}
	switch v := arg.(type) {
	case string:
		return k&aString != 0
	case map[string]any:
		return k&anObject != 0
	case []any:
		return k&anArray != 0 || k&numbers != 0 && !slices.ContainsFunc(v, isNoNumber) ||
			k&strs != 0 && !slices.ContainsFunc(v, isNoString)
	}
	return k&aNumber != 0 && isNumber(arg)
}

func isNumber(v any) bool   { _, ok := Number(v); return ok }
func isNoNumber(v any) bool { return !isNumber(v) }
func isNoString(v any) bool { _, ok := v.(string); return !ok }

// functions are the standard functions, then Kyverno's: strings, data, numbers and times. The table is
// read-only.
//
//nolint:gochecknoglobals // an immutable table
var functions = map[string]*function{
	"abs":         {params: []kind{aNumber}, call: onNumber(math.Abs)},
	"avg":         {params: []kind{numbers}, call: avg},
	"ceil":        {params: []kind{aNumber}, call: onNumber(math.Ceil)},
	"contains":    {params: []kind{anArray | aString, anything}, call: contains},
	"ends_with":   {params: []kind{aString, aString}, call: onStrings(strings.HasSuffix)},
	"floor":       {params: []kind{aNumber}, call: onNumber(math.Floor)},
	"join":        {params: []kind{aString, strs}, call: join},
	"keys":        {params: []kind{anObject}, call: keys},
	"length":      {params: []kind{aString | anArray | anObject}, call: lengthOf},
	"map":         {params: []kind{anExpression, anArray}, call: mapList},
	"max":         {params: []kind{numbers | strs}, call: extreme(1)},
	"max_by":      {params: []kind{anArray, anExpression}, call: extreme(1)},
	"merge":       {params: []kind{anObject}, variadic: true, call: merge},
	"min":         {params: []kind{numbers | strs}, call: extreme(-1)},
	"min_by":      {params: []kind{anArray, anExpression}, call: extreme(-1)},
	"not_null":    {params: []kind{anything}, variadic: true, call: notNull},
	"reverse":     {params: []kind{anArray | aString}, call: reverse},
	"sort":        {params: []kind{strs | numbers}, call: sortList},
	"sort_by":     {params: []kind{anArray, anExpression}, call: sortList},
	"starts_with": {params: []kind{aString, aString}, call: onStrings(strings.HasPrefix)},
	"to_array":    {params: []kind{anything}, call: toArray},
	"to_number":   {params: []kind{anything}, call: toNumber},
	"to_string":   {params: []kind{anything}, call: toString},
	"type":        {params: []kind{anything}, call: typeOf},
	"values":      {params: []kind{anObject}, call: values},

	"compare":       {params: []kind{aString, aString}, call: onStrings(compare)},
	"equal_fold":    {params: []kind{aString, aString}, call: onStrings(strings.EqualFold)},
	"replace":       {params: []kind{aString, aString, aString, aNumber}, call: replace},
	"replace_all":   {params: []kind{aString, aString, aString}, call: replace},
	"to_upper":      {params: []kind{aString}, call: onString(strings.ToUpper)},
	"to_lower":      {params: []kind{aString}, call: onString(strings.ToLower)},
	"trim":          {params: []kind{aString, aString}, call: onStrings(trim)},
	"trim_prefix":   {params: []kind{aString, aString}, call: onStrings(strings.TrimPrefix)},
	"split":         {params: []kind{aString, aString}, call: split},
	"truncate":      {params: []kind{aString, aNumber}, call: truncate},
	"to_boolean":    {params: []kind{aString}, call: toBoolean},
	"base64_decode": {params: []kind{aString}, call: base64Decode},
	"base64_encode": {params: []kind{aString}, call: onString(base64Encode)},
	"path_canonicalize": {
		params: []kind{aString},
		call:   onString(func(text string) string { return path.Join(text) }),
	},
	"sha256":      {params: []kind{aString}, call: onString(sha256Sum)},
	"sha1":        {params: []kind{aString}, call: onString(sha1Sum)},
	"md5":         {params: []kind{aString}, call: onString(md5Sum)},
	"regex_match": {params: []kind{aString, aString | aNumber}, call: regexMatch},
	"regex_replace_all": {
		params: []kind{aString, aString | aNumber, aString | aNumber},
		call:   regexReplace((*regexp.Regexp).ExpandString),
	},
	"regex_replace_all_literal": {
		params: []kind{aString, aString | aNumber, aString | aNumber},
		call:   regexReplace(literally),
	},
	"pattern_match": {params: []kind{aString, aString | aNumber}, call: patternMatch},
	"random":        {params: []kind{aString}, call: random, notIdempotent: "random value: random()"},

	"label_match":       {params: []kind{anObject, anObject}, call: labelMatch},
	"lookup":            {params: []kind{anObject | anArray, aString | aNumber}, call: lookup},
	"items":             {params: []kind{anObject | anArray, aString, aString}, call: items},
	"object_from_lists": {params: []kind{anArray, anArray}, call: objectFromLists},
	"parse_json":        {params: []kind{aString}, call: parseJSON},
	"parse_yaml":        {params: []kind{aString}, call: parseYAML},
	"semver_compare":    {params: []kind{aString, aString}, call: semverCompare},
	"x509_decode":       {params: []kind{aString}, call: x509Decode},
	"image_normalize":   {params: []kind{aString}, call: imageNormalize},
	"is_external_url":   {params: []kind{aString}, call: isExternalURL},

	"add":      {params: []kind{anything, anything}, call: add(1)},
	"subtract": {params: []kind{anything, anything}, call: add(-1)},
	"multiply": {params: []kind{anything, anything}, call: onOperands(multiply)},
	"divide":   {params: []kind{anything, anything}, call: onOperands(divide)},
	"modulo":   {params: []kind{anything, anything}, call: onOperands(modulo)},
	"sum":      {params: []kind{anArray}, call: sum},
	"round":    {params: []kind{aNumber, aNumber}, call: round},

	"time_now":     {unchecked: true, call: timeNow, notIdempotent: "reads the clock: time_now()"},
	"time_now_utc": {unchecked: true, call: timeNowUTC, notIdempotent: "reads the clock: time_now_utc()"},
	"time_since": {
		params: []kind{aString, aString, aString}, call: timeSince,
		notIdempotent: "reads the clock: time_since()",
	},
	"time_add":      {params: []kind{aString, aString}, call: onTimeAndDuration(time.Time.Add)},
	"time_parse":    {params: []kind{aString, aString}, call: timeParse},
	"time_to_cron":  {params: []kind{aString}, call: onTimes(timeToCron)},
	"time_utc":      {params: []kind{aString}, call: onTimes(timeUTC)},
	"time_diff":     {params: []kind{aString, aString}, call: onTimes(timeDiff)},
	"time_before":   {params: []kind{aString, aString}, call: onTimes(timeBefore)},
	"time_after":    {params: []kind{aString, aString}, call: onTimes(timeAfter)},
	"time_between":  {params: []kind{aString, aString, aString}, call: onTimes(timeBetween)},
	"time_truncate": {params: []kind{aString, aString}, call: onTimeAndDuration(time.Time.Truncate)},
}
