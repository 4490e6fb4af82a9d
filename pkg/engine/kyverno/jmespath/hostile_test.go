package jmespath

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/randomtext"
)

// What one call may take, whatever it is given.
const (
	mostAllocated = 200 << 20
	netOfTime     = 10 * time.Second // a call takes less than one; machines are busy
)

const megabyte = 1 << 20

var (
	letters  = strings.Repeat("a", megabyte)
	periodic = strings.Repeat("aa"+strings.Repeat("x", 15), megabyte/17) // nearly matches itself everywhere
	accents  = strings.Repeat("é", megabyte/2)
	digits   = strings.Repeat("9", megabyte)
	brackets = strings.Repeat("[", megabyte)
	objects  = "[" + strings.Repeat("{},", 200_000) + "{}]"
	aliases  = "a: &a [" + strings.Repeat("x,", 1000) + "x]\nb: [" + strings.Repeat("*a,", 20_000) + "*a]"
	halfway  = letters[:megabyte/2] + "b"
)

func repeated(n int, value any) list {
	out := make(list, n)
	for i := range out {
		out[i] = value
	}
	return out
}

func numbered(n int, format string) list {
	out := make(list, n)
	for i := range out {
		out[i] = fmt.Sprintf(format, i)
	}
	return out
}

func wideObject(n int) object {
	out := make(object, n)
	for i := range n {
		out[fmt.Sprint("key", i)] = "v"
	}
	return out
}

func deep(n int) any {
	var out any = "x"
	for range n {
		out = list{out}
	}
	return out
}

// identity and toText are expressions that return what they are given, and a long text.
var (
	identity = expressionRef(func(v any) (any, error) { return v, nil })
	toText   = expressionRef(func(any) (any, error) { return letters, nil })
)

// hostile are calls made for one function each, beside those that are made of what its
// parameters take.
func hostile() map[string][]list {
	texts, prefixed := repeated(100_000, letters), numbered(2000, letters[:1000]+"%d")
	wide := wideObject(100_000)
	time1, quantity := "2024-01-02T03:04:05Z", "1e99"
	return map[string][]list{
		"abs": {{-1e308}}, "ceil": {{1e308}}, "floor": {{1e308}}, "round": {{1e308, int64(1 << 62)}},
		"avg": {{repeated(1_000_000, 1e308)}}, "sum": {{repeated(200_000, quantity)}, {repeated(200_000, int64(1<<62))}, {repeated(10_000, "1ns")}},
		"max": {{texts}, {prefixed}}, "min": {{texts}, {prefixed}}, "sort": {{texts}, {prefixed}},
		"max_by": {{texts, identity}, {texts, toText}}, "min_by": {{texts, identity}}, "sort_by": {{texts, toText}, {prefixed, identity}},
		"map": {{identity, repeated(1_000_000, letters)}}, "contains": {{periodic, periodic[:megabyte/2] + "y"}, {repeated(1000, shared()), shared()}},
		"starts_with": {{letters, halfway}}, "ends_with": {{letters, halfway}}, "join": {{letters, numbered(100_000, "%d")}, {"", texts}},
		"keys": {{wide}}, "values": {{wide}}, "length": {{accents}}, "merge": {repeated(1000, wide)}, "not_null": {repeated(1_000_000, nil)},
		"reverse": {{accents}, {texts}}, "to_array": {{texts}}, "to_number": {{digits}, {"1e" + digits}}, "type": {{texts}},
		"to_string": {{shared()}, {texts}, {strings.Repeat("<", megabyte)}, {list{strings.Repeat("<", megabyte)}}, {deep(5000)}},

		"compare": {{letters, strings.Clone(letters)}}, "equal_fold": {{accents, strings.ToUpper(accents)}},
		"replace":     {{letters, "a", letters, 1e308}, {letters, "", letters, int64(-1)}, {periodic, periodic[:megabyte/2] + "y", "", int64(-1)}},
		"replace_all": {{letters, "a", letters}, {letters, letters[:100], ""}, {letters, "", "b"}},
		"to_upper":    {{strings.Repeat("ɐ", megabyte/2)}}, "to_lower": {{strings.Repeat("Ⱥ", megabyte/2)}},
		"trim": {{accents, strings.Repeat("ü", megabyte/4) + "é"}}, "trim_prefix": {{letters, halfway}},
		"split": {{letters, ""}, {letters, "a"}, {periodic, periodic[:megabyte/2] + "y"}}, "truncate": {{accents, 1e308}, {accents, int64(400_000)}},
		"to_boolean": {{letters}}, "base64_encode": {{letters}}, "base64_decode": {{letters}},
		"path_canonicalize": {{strings.Repeat("a/../", megabyte/5)}},
		"sha256":            {{letters}}, "sha1": {{letters}}, "md5": {{letters}},
		"regex_match": {
			{strings.Repeat("x{0,1000}", 100), strings.Repeat("x", 3000)},
			{strings.Repeat("(a?){50}", 100), letters},
			{"(a*)*b", letters},
			{"((a{0,100}){0,100}){0,100}", letters},
			{strings.Repeat("(", 900) + strings.Repeat(")", 900), letters},
		},
		"regex_replace_all": {
			{"a*b|a", letters, "$0$0"},
			{`\b`, strings.Repeat("a ", megabyte/2), letters},
			{`(?:a*b|a)\B`, letters, ""},
			{strings.Repeat("(a?)", 2000), letters, "$1"},
			{strings.Repeat("()", 4000), letters, ""},
			{"", letters, "x"},
		},
		"regex_replace_all_literal": {{"a*b|a", letters, "b"}, {"a", letters, letters}, {`^|a*b`, letters, ""}},
		"pattern_match":             {{"*" + halfway, letters}, {"*" + strings.Repeat("a?", megabyte/8) + "b*", letters}},
		"random":                    {{"[a-z]{1000}{1000}"}, {strings.Repeat("(a|b)", 200)}, {letters}},
		"label_match":               {{wide, wideObject(100_000)}, {object{"a": shared()}, object{"a": shared()}}},
		"lookup":                    {{wide, letters}, {texts, 1e308}}, "items": {{wide, letters, halfway}, {texts, "k", "v"}},
		"object_from_lists": {{numbered(300_000, "%d"), texts}, {prefixed, texts}},
		"parse_json":        {{objects}, {brackets}, {"[" + strings.Repeat("1,", megabyte/2) + "1]"}, {`"` + letters + `"`}, {digits}},
		"parse_yaml":        {{objects}, {brackets}, {aliases}, {strings.Repeat("- ", megabyte/2)}, {strings.Repeat("a: 1\n", megabyte/5)}, {letters}},
		"semver_compare":    {{"1.2.3-" + strings.Repeat("a.", megabyte/2) + "a", ">1.0.0"}, {"1.2.3", strings.Repeat(">1.0.0||", 100_000) + ">1.0.0"}},
		"x509_decode":       {{strings.Repeat("-----BEGIN ", megabyte/11)}, {"-----BEGIN CERTIFICATE-----\n" + letters + "\n-----END CERTIFICATE-----\n"}},
		"image_normalize":   {{strings.Repeat("a/", megabyte/2) + "a"}, {letters}, {"x@sha256:" + digits}}, "is_external_url": {{"https://" + letters}},

		"add": {{quantity, quantity}, {digits, digits}, {"1e999999999", "1"}}, "subtract": {{quantity, "1e-99"}, {digits, "1"}},
		"multiply": {{quantity, 1e99}, {"1h", 1e308}, {digits, int64(1 << 62)}}, "divide": {{quantity, 1e-99}, {"1e-99", 1e99}, {digits, int64(3)}},
		"modulo": {{quantity, "3"}, {int64(1 << 62), 1e-300}, {digits, digits}},

		"time_now": {repeated(1_000_000, letters)}, "time_now_utc": {{letters}}, "time_since": {{letters, letters, ""}, {strings.Repeat("2006", megabyte/4), strings.Repeat("2024", megabyte/4), ""}},
		"time_add": {{time1, digits + "h"}, {letters, "1h"}}, "time_parse": {{strings.Repeat("2006", megabyte/4), strings.Repeat("2024", megabyte/4)}, {"1", digits}},
		"time_to_cron": {{letters}}, "time_utc": {{digits}}, "time_diff": {{letters, time1}}, "time_before": {{time1, letters}}, "time_after": {{letters, letters}},
		"time_between": {{time1, time1, letters}}, "time_truncate": {{time1, strings.Repeat("1h", megabyte/2)}},
	}
}

// candidates are hostile values of each kind.
func candidates(k kind) list {
	var out list
	for kind, values := range map[kind]list{
		aString:      {letters, accents, objects},
		aNumber:      {1e308, int64(-1 << 62), 1e-300},
		anArray:      {repeated(200_000, letters), shared()},
		strs:         {repeated(200_000, letters)},
		numbers:      {repeated(200_000, 1e308)},
		anObject:     {wideObject(50_000)},
		anExpression: {identity, toText},
		anything:     {letters, repeated(200_000, letters), wideObject(1000)},
	} {
		if k&kind != 0 {
			out = append(out, values...)
		}
	}
	return out
}

// generated are calls with hostile values for all parameters, each value of each parameter at
// least once.
func generated(d *definition) []list {
	choices, most := make([]list, len(d.params)), 0
	for i, k := range d.params {
		choices[i] = candidates(k)
		most = max(most, len(choices[i]))
	}
	calls := make([]list, most)
	for n := range calls {
		for i := range choices {
			calls[n] = append(calls[n], choices[i][(n+i)%len(choices[i])])
		}
	}
	return calls
}

// Each function of the table ends with a result, an error or a limit, within bounds of memory and
// having paid for what it was given, whatever that is.
func TestHostileCalls(t *testing.T) {
	calls, count := hostile(), 0
	for name := range calls {
		if _, known := lookupFunction(name); !known {
			t.Errorf("%s is no function", name)
		}
	}
	for name, d := range definitions {
		if len(calls[name]) == 0 {
			t.Errorf("%s: there is no hostile call of it: add one", name)
		}
		t.Run(name, func(t *testing.T) {
			for i, args := range append(calls[name], generated(d)...) {
				count++
				testHostile(t, fmt.Sprintf("call %d", i), name, args)
			}
		})
	}
	t.Logf("%d calls of %d functions", count, len(definitions))
}

func testHostile(t *testing.T, call, name string, args list) {
	t.Helper()
	f, _ := lookupFunction(name)
	e := newEnv(t)
	e.world = &world{Now: time.Unix(0, 0), Random: randomtext.New(1)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	result, err := f.Call(e, args)
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > mostAllocated {
		t.Errorf("%s: it allocates %d MiB", call, allocated>>20)
	}
	if took > netOfTime {
		t.Errorf("%s: it takes %s", call, took)
	}
	var limit *engine.LimitError
	var failed *CallError
	if errors.As(err, &limit) {
		return
	}
	if err != nil {
		if !errors.As(err, &failed) {
			t.Errorf("%s: error %v, want a CallError or a LimitError", call, err)
		}
		if len(err.Error()) > 2*maxReason {
			t.Errorf("%s: an error of %d bytes", call, len(err.Error()))
		}
		result = nil
	}
	steps, bytes := e.Spent()
	if want := stepsToRead(args) + stepsToRead(list{result}); f.picks && steps < stepsToRead(args) || !f.picks && !f.passes && steps < want {
		t.Errorf("%s: it pays %d steps, want at least %d for what it reads and returns", call, steps, want)
	}
	if text, ok := result.(string); ok && !f.picks && !f.passes && bytes < len(text) {
		t.Errorf("%s: it pays for %d bytes, and builds %d", call, bytes, len(text))
	}
	if _, err := e.Measure(result); err != nil && !errors.As(err, &limit) {
		t.Errorf("%s: the result cannot be measured: %v", call, err)
	}
}

// stepsToRead are those of reading texts, and the length of lists and objects.
func stepsToRead(values list) int {
	steps := 0
	for _, value := range values {
		switch v := value.(type) {
		case string:
			steps += len(v) / 16
		case list:
			steps += len(v)
		case object:
			steps += len(v)
		}
	}
	return steps
}
