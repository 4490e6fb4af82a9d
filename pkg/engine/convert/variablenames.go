package convert

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// variableNames are names of variables: a wanted one, or that with a number where it is taken.
type variableNames struct {
	cel  map[string]string   // by name
	of   map[string][]string // the names of an expression
	next map[string]int      // by the wanted name: the numbers below are taken, here and in what was beside. It is number 1.
}

// freeName is the first of the names for a wanted one that has no other expression, in both.
func freeName(wanted, cel string, beside, own *variableNames) string {
	if beside == nil {
		beside = &variableNames{}
	}
	next := max(beside.next[wanted], own.next[wanted], 1)
	numbers := []int{next}
	for _, name := range slices.Concat(beside.of[cel], own.of[cel]) {
		if n := numberOf(name, wanted); n > 0 && n < next {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for {
		n := numbers[0]
		if name := withNumber(wanted, n); !beside.takes(name, cel) && !own.takes(name, cel) {
			own.skip(wanted, n)
			return name
		}
		if numbers = numbers[1:]; len(numbers) == 0 {
			numbers = []int{n + 1}
		}
	}
}

// takes reports whether a name is that of another expression.
func (v *variableNames) takes(name, cel string) bool {
	known, ok := v.cel[name]
	return ok && known != cel
}

// skip notes that all numbers of a wanted name are taken up to one.
func (v *variableNames) skip(wanted string, number int) {
	if v.next == nil {
		v.next = map[string]int{}
	}
	v.next[wanted] = max(v.next[wanted], number+1)
}

// add gives an expression a name, and reports whether it did not have it.
func (v *variableNames) add(name, cel string) bool {
	if known, ok := v.cel[name]; ok && known == cel {
		return false
	}
	if v.cel == nil {
		v.cel, v.of = map[string]string{}, map[string][]string{}
	}
	v.cel[name] = cel
	v.of[cel] = append(v.of[cel], name)
	return true
}

// join adds the names of a rule, which were chosen beside these.
func (v *variableNames) join(rule *variableNames) {
	for _, name := range slices.Sorted(maps.Keys(rule.cel)) {
		v.add(name, rule.cel[name])
	}
	for wanted, next := range rule.next {
		v.skip(wanted, next-1)
	}
}

func withNumber(wanted string, number int) string {
	if number == 1 {
		return wanted
	}
	return wanted + strconv.Itoa(number)
}

// numberOf is the number with which a name was made of a wanted one; 0 where it was not.
func numberOf(name, wanted string) int {
	text, ok := strings.CutPrefix(name, wanted)
	if ok && text == "" {
		return 1
	}
	if n, err := strconv.Atoi(text); ok && err == nil && n > 1 && text == strconv.Itoa(n) {
		return n
	}
	return 0
}
