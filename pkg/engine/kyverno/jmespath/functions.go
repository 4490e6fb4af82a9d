package jmespath

import (
	"errors"
	"fmt"
	"strings"
)

// function is one entry of the table: what it takes and what it does.
type function struct {
	params []kind
	// variadic lets the last parameter repeat; unchecked leaves the number of
	// arguments open, as Kyverno does for its clocks.
	variadic, unchecked bool
	call                func(e *evaluation, args []any) (any, error)
	notIdempotent       string
}

// kind is what a parameter may be: the union of its bits.
type kind uint

const (
	aString kind = 1 << iota
	aNumber
	anArray
	anObject
	numbers // an array of nothing but numbers
	strs    // an array of nothing but strings
	anExpression
	anything
)

// kindNames are the words of Kyverno's error messages.
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
	if _, ok := arg.(referenceNode); ok {
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
		return k&anArray != 0 || (k&numbers != 0 && all(v, isNumber)) || (k&strs != 0 && all(v, isString))
	}
	return k&aNumber != 0 && isNumber(arg)
}

func all(list []any, holds func(any) bool) bool {
	for _, item := range list {
		if !holds(item) {
			return false
		}
	}
	return true
}

func isNumber(v any) bool { _, ok := number(v); return ok }
func isString(v any) bool { _, ok := v.(string); return ok }

// invoke checks the arguments and calls the function. Its errors are
// *FunctionError, but for those of limits.
func (f *function) invoke(e *evaluation, name string, args []any) (any, error) {
	if err := f.check(e, args); err != nil {
		return nil, named(name, err)
	}
	result, err := f.call(e, args)
	if err != nil {
		return nil, named(name, err)
	}
	return result, nil
}

func named(name string, err error) error {
	var limit *LimitError
	var inner *FunctionError
	if errors.As(err, &limit) || errors.As(err, &inner) {
		return err
	}
	return &FunctionError{Function: name, Err: err}
}

func (f *function) check(e *evaluation, args []any) error {
	if f.unchecked {
		return nil
	}
	if len(args) < len(f.params) || (len(args) > len(f.params) && !f.variadic) {
		return fmt.Errorf("incorrect number of args: %d, expected %d", len(args), len(f.params))
	}
	for i, arg := range args {
		if list, ok := arg.([]any); ok {
			if err := e.spend(len(list)); err != nil {
				return err
			}
		}
		want := f.params[min(i, len(f.params)-1)]
		if !want.admits(arg) {
			return fmt.Errorf("argument #%d is not of type %s", i+1, want)
		}
	}
	return nil
}

// functions is the table of all that policies may call: the standard functions
// of JMESPath and Kyverno's own (pkg/engine/jmespath). It is never written to.
//
//nolint:gochecknoglobals // an immutable table
var functions = map[string]*function{
	"abs":         {params: []kind{aNumber}, call: abs},
	"avg":         {params: []kind{numbers}, call: avg},
	"ceil":        {params: []kind{aNumber}, call: ceil},
	"contains":    {params: []kind{anArray | aString, anything}, call: contains},
	"ends_with":   {params: []kind{aString, aString}, call: endsWith},
	"floor":       {params: []kind{aNumber}, call: floor},
	"join":        {params: []kind{aString, strs}, call: join},
	"keys":        {params: []kind{anObject}, call: keys},
	"length":      {params: []kind{aString | anArray | anObject}, call: length},
	"map":         {params: []kind{anExpression, anArray}, call: mapList},
	"max":         {params: []kind{numbers | strs}, call: maximum},
	"max_by":      {params: []kind{anArray, anExpression}, call: maximumBy},
	"merge":       {params: []kind{anObject}, variadic: true, call: merge},
	"min":         {params: []kind{numbers | strs}, call: minimum},
	"min_by":      {params: []kind{anArray, anExpression}, call: minimumBy},
	"not_null":    {params: []kind{anything}, variadic: true, call: notNull},
	"reverse":     {params: []kind{anArray | aString}, call: reverse},
	"sort":        {params: []kind{strs | numbers}, call: sortList},
	"sort_by":     {params: []kind{anArray, anExpression}, call: sortBy},
	"starts_with": {params: []kind{aString, aString}, call: startsWith},
	"to_array":    {params: []kind{anything}, call: toArray},
	"to_number":   {params: []kind{anything}, call: toNumber},
	"to_string":   {params: []kind{anything}, call: toString},
	"type":        {params: []kind{anything}, call: typeOf},
	"values":      {params: []kind{anObject}, call: values},

	"compare":                   {params: []kind{aString, aString}, call: compare},
	"equal_fold":                {params: []kind{aString, aString}, call: equalFold},
	"replace":                   {params: []kind{aString, aString, aString, aNumber}, call: replace},
	"replace_all":               {params: []kind{aString, aString, aString}, call: replaceAll},
	"to_upper":                  {params: []kind{aString}, call: toUpper},
	"to_lower":                  {params: []kind{aString}, call: toLower},
	"trim":                      {params: []kind{aString, aString}, call: trim},
	"trim_prefix":               {params: []kind{aString, aString}, call: trimPrefix},
	"split":                     {params: []kind{aString, aString}, call: split},
	"truncate":                  {params: []kind{aString, aNumber}, call: truncate},
	"to_boolean":                {params: []kind{aString}, call: toBoolean},
	"base64_decode":             {params: []kind{aString}, call: base64Decode},
	"base64_encode":             {params: []kind{aString}, call: base64Encode},
	"path_canonicalize":         {params: []kind{aString}, call: pathCanonicalize},
	"sha256":                    {params: []kind{aString}, call: sha256Sum},
	"sha1":                      {params: []kind{aString}, call: sha1Sum},
	"md5":                       {params: []kind{aString}, call: md5Sum},
	"regex_match":               {params: []kind{aString, aString | aNumber}, call: regexMatch},
	"regex_replace_all":         {params: []kind{aString, aString | aNumber, aString | aNumber}, call: regexReplaceAll},
	"regex_replace_all_literal": {params: []kind{aString, aString | aNumber, aString | aNumber}, call: regexReplaceAllLiteral},
	"pattern_match":             {params: []kind{aString, aString | aNumber}, call: patternMatch},
	"random":                    {params: []kind{aString}, call: random, notIdempotent: "random value: random()"},

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

	"add":      {params: []kind{anything, anything}, call: add},
	"subtract": {params: []kind{anything, anything}, call: subtract},
	"multiply": {params: []kind{anything, anything}, call: multiply},
	"divide":   {params: []kind{anything, anything}, call: divide},
	"modulo":   {params: []kind{anything, anything}, call: modulo},
	"sum":      {params: []kind{anArray}, call: sum},
	"round":    {params: []kind{aNumber, aNumber}, call: round},

	"time_now":      {unchecked: true, call: timeNow, notIdempotent: "reads the clock: time_now()"},
	"time_now_utc":  {unchecked: true, call: timeNowUTC, notIdempotent: "reads the clock: time_now_utc()"},
	"time_since":    {params: []kind{aString, aString, aString}, call: timeSince, notIdempotent: "reads the clock: time_since()"},
	"time_add":      {params: []kind{aString, aString}, call: timeAdd},
	"time_parse":    {params: []kind{aString, aString}, call: timeParse},
	"time_to_cron":  {params: []kind{aString}, call: timeToCron},
	"time_utc":      {params: []kind{aString}, call: timeUTC},
	"time_diff":     {params: []kind{aString, aString}, call: timeDiff},
	"time_before":   {params: []kind{aString, aString}, call: timeBefore},
	"time_after":    {params: []kind{aString, aString}, call: timeAfter},
	"time_between":  {params: []kind{aString, aString, aString}, call: timeBetween},
	"time_truncate": {params: []kind{aString, aString}, call: timeTruncate},
}
