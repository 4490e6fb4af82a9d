package convert

import (
	"fmt"
	"strings"
)

// scope is what the texts of a rule can mention: it turns them into expressions.
type scope struct {
	workload bool // the objects have a Pod, or a template of one
}

// sure reports whether a field is there in every object that a server takes.
func (s *scope) sure(at place, name string) bool {
	path := append(at.path[:len(at.path):len(at.path)], name)
	if n := len(path); n > 1 && path[n-2] == "[]" {
		for _, k := range elementKeys {
			if k == name {
				return elementKeySure(path)
			}
		}
	}
	if len(path) == 1 && name == "spec" {
		return s.workload
	}
	return surelyThere(path)
}

//nolint:gochecknoglobals // an immutable table
var elementKeys = []string{"name"}

// elementKeySure reports whether the elements of a list always have their name.
func elementKeySure(path []string) bool {
	switch path[len(path)-3] {
	case "containers", "initContainers", "ephemeralContainers", "volumes", "env", "volumeMounts":
		return true
	}
	return false
}

// text is an expression for a text with variables.
func (s *scope) text(template string) (expression, error) {
	return expression{}, refuseField("", "", "the variables of %q are not converted yet", template)
}

// value is an expression for a text with variables, which may be one of another type.
func (s *scope) value(template string, _ place) (expression, error) { return s.text(template) }

// variables are names for an element of a list and its index, which no other one has.
func (s *scope) variables(list place, used map[string]bool) (element, index string) {
	name := "e"
	if n := len(list.path); n > 0 {
		switch last := strings.ToLower(list.path[n-1]); {
		case strings.HasSuffix(last, "containers"):
			name = "c"
		case last == "volumes":
			name = "v"
		case last == "volumemounts":
			name = "m"
		case last == "ports":
			name = "p"
		}
	}
	element, index = name, "i"
	for i := 2; used[element]; i++ {
		element = fmt.Sprint(name, i)
	}
	if len(used) > 0 {
		index = string(rune('i' + len(used)))
	}
	used[element] = true
	return element, index
}
