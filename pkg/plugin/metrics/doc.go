// Package metrics counts what a run did, and writes the counts as OpenMetrics text with
// the Prometheus libraries.
//
// All metrics of a run that ends are gauges: they say what the last run found and did, and do not add
// up over runs. Those of a watch are counters, since it began: an object that is evaluated again counts again.
//
//   - kubectl_mutate_objects: evaluated objects, by what would become of them;
//   - kubectl_mutate_incomplete_objects: those of them on which a rule failed, was
//     denied or is not supported;
//   - kubectl_mutate_rule_objects: objects by the outcome of each rule on them;
//     that a rule did not match is left out;
//   - kubectl_mutate_writes: objects that a run tried to write, by outcome;
//   - kubectl_mutate_rule_writes: the same, by each rule that changed the object;
//   - kubectl_mutate_watch_events, kubectl_mutate_watch_errors, kubectl_mutate_watch_waiting_events: of a watch, how
//     many changes of the cluster were evaluated, what went wrong, and how many changes wait.
package metrics
