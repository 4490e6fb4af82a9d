package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

func TestBatches(t *testing.T) {
	for name, c := range map[string]struct {
		tasks string // each with what triggers its change
		size  int
		want  string
	}{
		"what nothing triggers":                      {"a b c", 9, "a b c"},
		"a size":                                     {"a b c", 2, "a b | c"},
		"a trigger comes after what it triggers":     {"b<a a c<b", 9, "c | b | a"},
		"a trigger that is not written":              {"b<x c<x", 9, "b c"},
		"an object that triggers its own change":     {"a<a b", 9, "a b"},
		"two ways to one trigger":                    {"a b<a c<a d<b,c", 9, "d | b c | a"},
		"a circle":                                   {"a<b b<a c<b", 9, "c | b | a"},
		"a size is for what is written side by side": {"a b<a c<a d<a", 2, "b c | d | a"},
	} {
		t.Run(name, func(t *testing.T) {
			var tasks []*Task
			for text := range strings.FieldsSeq(c.tasks) {
				name, triggers, _ := strings.Cut(text, "<")
				task := &Task{Key: engine.ObjectKey{Name: name, UID: "1"}, Entry: &plan.Entry{}}
				for trigger := range strings.SplitSeq(triggers, ",") {
					task.Entry.Steps = append(task.Entry.Steps, engine.Step{Outcome: engine.Changed, Trigger: engine.ObjectKey{Name: trigger}})
				}
				tasks = append(tasks, task)
			}
			var got []string
			(&Executor{tasks: tasks}).arrange(tasks)
			for _, batch := range batches(tasks, c.size) {
				var names []string
				for _, task := range batch {
					names = append(names, task.Key.Name)
				}
				got = append(got, strings.Join(names, " "))
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " | ")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
