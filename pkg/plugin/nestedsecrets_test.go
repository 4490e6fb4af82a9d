package plugin_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// nestedCalls are calls of functions on what calls of other functions make of a Secret.
func nestedCalls(t *testing.T, random *rand.Rand, n int) []string {
	t.Helper()
	functions := jmespathFunctions(t)
	var calls []string
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		calls = append(calls, jmespathCalls(name, functions[name])...)
	}
	out := make([]string, n)
	for i := range out {
		inner, outer := calls[random.IntN(len(calls))], calls[random.IntN(len(calls))]
		out[i] = strings.NewReplacer("s.text", inner, "to_number(s.number)", inner).Replace(outer)
		if random.IntN(3) == 0 {
			out[i] = strings.ReplaceAll(out[i], "s.number", calls[random.IntN(len(calls))])
		}
	}
	return out
}

// TestSecretsInNestedCalls is TestSecretsByOrigin for functions of functions, in places that are drawn: rules that write to the same places,
// and set back what others made, are among them.
func TestSecretsInNestedCalls(t *testing.T) {
	const calls, places = 150, 3 // of each policy, and of each call
	policies := 3
	if *everyMutation {
		policies = 100
	}
	dir := t.TempDir()
	world := writeSecretsFile(t, dir, "world.yaml", secretWorld())
	secrets := newDisguises(secretText, secretNumber, secretOlder)
	random := rand.New(rand.NewPCG(1, 7)) //nolint:gosec // the same each time
	for i := range policies {
		var rules []map[string]any
		for n, call := range nestedCalls(t, random, calls) {
			all := append(kyvernoPlaces(call), kyvernoValues(n, call)...)
			for range places {
				rules = append(rules, maps.Clone(all[random.IntN(len(all))]))
			}
		}
		policy := writeSecretsFile(t, dir, "policy.json", kyvernoPolicy("p", rules))
		format := []string{"json", "summary", "diff"}[i%3]
		args := []string{"preview", "-p", policy, "-f", world, "-q", "--explain", "-o", format}
		if _, out := secretsRun(t, append(args, "--show-secrets")...); secrets.in(out) == "" {
			t.Fatalf("policy %d makes nothing of the Secret:\n%.1000s", i, out)
		}
		if _, out := secretsRun(t, args...); secrets.in(out) != "" {
			t.Errorf("policy %d, -o %s: %s", i, format, secrets.in(out))
		}
	}
}
