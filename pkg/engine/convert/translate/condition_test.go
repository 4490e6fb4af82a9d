package translate_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
)

// wide makes the tests try all combinations, which takes minutes.
var wide = os.Getenv("TRANSLATE_WIDE") != ""

var operators = []string{
	"Equals", "NotEquals", "In", "AnyIn", "AllIn", "NotIn", "AnyNotIn", "AllNotIn", "GreaterThanOrEquals", "GreaterThan", "LessThanOrEquals",
	"LessThan", "DurationGreaterThanOrEquals", "DurationGreaterThan", "DurationLessThanOrEquals", "DurationLessThan",
}

var conditionKeys = []any{
	"{{ request.object.metadata.labels.team }}", "{{ request.object.metadata.labels.team || '' }}", "{{ request.object.metadata.labels.team || 'none' }}",
	"{{ request.object.metadata.labels.size }}", "{{ request.object.metadata.labels.span || '' }}", "{{ request.object.metadata.annotations.version || '' }}",
	"{{ request.object.spec.priority }}", "{{ request.object.spec.priority || `7` }}", "{{ request.object.spec.hostNetwork }}", "{{ request.object.spec.hostNetwork || `false` }}",
	"{{ request.object.spec.containers[].name }}", "{{ request.object.spec.containers[].image || `[]` }}", "{{ request.object.spec.initContainers[].name }}",
	"{{ request.object.spec.containers[].ports[].containerPort }}", "{{ keys(request.object.metadata.labels) }}", "{{ keys(request.object.metadata.labels || `{}`) }}",
	"{{ length(request.object.spec.containers) }}", "{{ length(request.object.spec.initContainers || `[]`) }}", "{{ request.object.metadata.name }}",
	"{{ request.object.spec.containers[0].resources.limits.memory || '' }}", "{{ request.object.spec.containers[0].resources.limits.memory }}", "{{ request.object.spec.containers[9].image }}",
	"{{ to_upper(request.object.metadata.labels.team) }}", "{{ contains(request.object.spec.containers[].name, 'main') }}", "{{ request.object.metadata.labels }}",
	"{{ request.object.spec.containers[0].args }}", "{{ request.object.spec.containers[0].args || `[]` }}", "{{ request.object.metadata.labels.team == 'blue' }}",
	"{{ request.operation }}", "{{ request.operation || 'BACKGROUND' }}", "ns-{{ request.object.metadata.labels.team }}", "text", int64(5),
	[]any{"a", "main"},
	"{{ starts_with(request.object.metadata.name, 'web') }}", "{{ request.object.spec.containers[?name == 'main'].image | [0] }}", "{{ request.object.metadata.labels.team && `true` || `false` }}",
}

var conditionValues = []any{
	"blue", "", "5", "5.0", "web-*", "*", "?*", "w?b-*", "*e*", "1h", "5m", "60m", "2Gi", "500m", "1Gi", "1.2.3", "0", "true", "1-5", "1Gi-3Gi", `["blue","red"]`, "[5]",
	int64(5), int64(0), int64(-3), 2.5, true, false, nil,
	[]any{"blue", "red"},
	[]any{"main", "side"},
	[]any{"*a*", "b"},
	[]any{},
	[]any{int64(5), int64(80)},
	[]any{""},
	[]any{"CREATE", "UPDATE"},
	[]any{"team", "x*"},
	map[string]any{"team": "red"},
	map[string]any{},
	"main", "CREATE", "{{ request.object.spec.priority || `3` }}", "{{ request.object.metadata.labels.app }}",
	"{{ request.object.spec.containers[].name }}", "{{ keys(request.object.metadata.labels) }}",
	[]any{"a", "b"},
}

// TestOperators compares all operators on all kinds of keys and values.
func TestOperators(t *testing.T) {
	b := newBoth(t, readObjects(t))
	random := rand.New(rand.NewPCG(1, 2))
	translated, refused := 0, map[string]int{}
	for _, key := range conditionKeys {
		for _, operator := range operators {
			for _, value := range conditionValues {
				if testing.Short() && random.IntN(20) > 0 || !wide && random.IntN(8) > 0 {
					continue
				}
				known := random.IntN(4) > 0 || strings.Contains(text(key), "args") // which would be taken for a string
				language := translate.Language(random.IntN(2))
				raw := []any{map[string]any{"key": key, "operator": operator, "value": value}}
				err := error(nil)
				t.Run(text(raw), func(t *testing.T) { err = b.conditions(t, language, known, raw) })
				var unsupported *translate.UnsupportedError
				switch {
				case err == nil:
					translated++
				case errors.As(err, &unsupported):
					refused[unsupported.Construct+": "+unsupported.Reason]++
				default:
					t.Errorf("%v %s %v: %v", key, operator, value, err)
				}
			}
		}
	}
	t.Logf("translated %d, refused %v", translated, refused)
	if translated < 1000 && !testing.Short() {
		t.Errorf("only %d were translated", translated)
	}
}
