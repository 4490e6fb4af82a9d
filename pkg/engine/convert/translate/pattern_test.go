package translate_test

import (
	"errors"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
)

var patternQueries = []string{
	"request.object.metadata.name", "request.object.metadata.labels.team", "request.object.metadata.labels.size", "request.object.metadata.labels.span",
	"request.object.metadata.annotations.version", "request.object.spec.priority", "request.object.spec.hostNetwork",
	"request.object.spec.containers[0].image", "request.object.spec.containers[0].resources.limits.memory", "request.object.spec.containers[0].args",
	"request.object.spec.containers[].name",
}

var patterns = []string{
	"blue", "", "*", "?*", "!blue", "!*", "!?*", "*:latest", "web-*", "w?b-*", "!*:latest", "!*:latest & !nginx*", "blue|red", "blue | red | web", "a|!b", "main|side|*e*",
	"5", "!5", "5.0", ">2", ">=5", "<5", "<= 5", "!5.0", "1-5", "1!-5", "-5-5", ">-4", "2Gi", ">1Gi", "<2Gi", "1Gi-2Gi", "1h", ">30m", "<1h", "1m-2h", "!1h", "true", "false", "!true", "t*", "> 2 & < 10",
	"500m", ">1.2.3", "5|>50", "0", ">0", "<", "!",
}

// TestPatterns compares the patterns that anchors hold.
func TestPatterns(t *testing.T) {
	b := newBoth(t, readObjects(t))
	translated := 0
	for _, query := range patternQueries {
		for _, want := range patterns {
			t.Run(query+" "+want, func(t *testing.T) {
				err := b.matches(t, translate.Language(len(want)%2), true, query, want)
				var refused *translate.UnsupportedError
				switch {
				case err == nil:
					translated++
				case errors.As(err, &refused):
					t.Skip(err)
				default:
					t.Error(err)
				}
			})
		}
	}
	if all := len(patternQueries) * len(patterns); translated < all*9/10 {
		t.Errorf("only %d of %d are translated", translated, all)
	}
}
