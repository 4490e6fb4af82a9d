// Package conformance runs a corpus of cases, and the laws that hold for every
// one of them, against any dialect, in the way of testing/fstest.
//
// A case is one txtar file. Its first lines say what is shown; a line "not
// idempotent: REASON" among them says that the result, evaluated again, changes
// it again. The sections are
//
//	policy.DIALECT.yaml  the intent in one language; a dialect without one skips the case
//	live.yaml            the objects that are evaluated
//	world.yaml           other objects that exist (optional)
//	request.yaml         operation, user and groups of the request (optional)
//	want.yaml            every object that ends changed, whole; all others end as they were
//	want.error           a line per policy that does not compile and per rule that fails (optional)
//	trace.DIALECT        what each rule did and which fields it wrote (optional; an
//	                     empty section is filled when results are rewritten)
//
// One want.yaml holds for all dialects: the same intent has the same result,
// whatever the language.
//
// The laws: nothing that was handed in is modified; the same question has the
// same answer; evaluating the result again changes nothing; Before and Fields
// give After; every field has a writer whose step is "changed".
package conformance
