package jmespath

import (
	"math"
	"path"
	"regexp"
	"strings"
	"time"
)

// functions are the standard functions, then Kyverno's: strings, data, numbers and
// times. The table is never written to.
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

	"compare":                   {params: []kind{aString, aString}, call: onStrings(compare)},
	"equal_fold":                {params: []kind{aString, aString}, call: onStrings(strings.EqualFold)},
	"replace":                   {params: []kind{aString, aString, aString, aNumber}, call: replace},
	"replace_all":               {params: []kind{aString, aString, aString}, call: replaceAll},
	"to_upper":                  {params: []kind{aString}, call: onString(strings.ToUpper)},
	"to_lower":                  {params: []kind{aString}, call: onString(strings.ToLower)},
	"trim":                      {params: []kind{aString, aString}, call: onStrings(trim)},
	"trim_prefix":               {params: []kind{aString, aString}, call: onStrings(strings.TrimPrefix)},
	"split":                     {params: []kind{aString, aString}, call: split},
	"truncate":                  {params: []kind{aString, aNumber}, call: truncate},
	"to_boolean":                {params: []kind{aString}, call: toBoolean},
	"base64_decode":             {params: []kind{aString}, call: base64Decode},
	"base64_encode":             {params: []kind{aString}, call: onString(base64Encode)},
	"path_canonicalize":         {params: []kind{aString}, call: onString(func(text string) string { return path.Join(text) })},
	"sha256":                    {params: []kind{aString}, call: onString(sha256Sum)},
	"sha1":                      {params: []kind{aString}, call: onString(sha1Sum)},
	"md5":                       {params: []kind{aString}, call: onString(md5Sum)},
	"regex_match":               {params: []kind{aString, aString | aNumber}, call: regexMatch},
	"regex_replace_all":         {params: []kind{aString, aString | aNumber, aString | aNumber}, call: regexReplace((*regexp.Regexp).ExpandString)},
	"regex_replace_all_literal": {params: []kind{aString, aString | aNumber, aString | aNumber}, call: regexReplace(literally)},
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

	"add":      {params: []kind{anything, anything}, call: add(1)},
	"subtract": {params: []kind{anything, anything}, call: add(-1)},
	"multiply": {params: []kind{anything, anything}, call: onOperands(multiply)},
	"divide":   {params: []kind{anything, anything}, call: onOperands(divide)},
	"modulo":   {params: []kind{anything, anything}, call: onOperands(modulo)},
	"sum":      {params: []kind{anArray}, call: sum},
	"round":    {params: []kind{aNumber, aNumber}, call: round},

	"time_now":      {unchecked: true, call: timeNow, notIdempotent: "reads the clock: time_now()"},
	"time_now_utc":  {unchecked: true, call: timeNowUTC, notIdempotent: "reads the clock: time_now_utc()"},
	"time_since":    {params: []kind{aString, aString, aString}, call: timeSince, notIdempotent: "reads the clock: time_since()"},
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
