package cel

import "github.com/google/cel-go/common/decls"

// Functions are those that expressions of the environment can call.
func (e *Environment) Functions() map[string]*decls.FunctionDecl { return e.patches.base.Functions() }
