package library

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"github.com/kyverno/sdk/extensions/cel/libs/globalcontext"
	"github.com/kyverno/sdk/extensions/cel/libs/hash"
	"github.com/kyverno/sdk/extensions/cel/libs/image"
	"github.com/kyverno/sdk/extensions/cel/libs/json"
	"github.com/kyverno/sdk/extensions/cel/libs/math"
	"github.com/kyverno/sdk/extensions/cel/libs/resource"
	"github.com/kyverno/sdk/extensions/cel/libs/transform"
	"github.com/kyverno/sdk/extensions/cel/libs/user"
	"github.com/kyverno/sdk/extensions/cel/libs/x509"
	"github.com/kyverno/sdk/extensions/cel/libs/yaml"
)

// The variables of the libraries. Two of them stand for functions that depend on
// more than their arguments: a policy cannot write their names, only the macros
// of this package can.
const (
	resourceName      = "resource"
	globalContextName = "globalContext"
	httpName          = "http"
	imageName         = "image"
	exceptionsName    = "exceptions"
	clockName         = "@clock"
	diceName          = "@dice"
)

// Options declares everything that expressions of a MutatingPolicy may name beside
// what Kubernetes has. The functions of resource do without a namespace in a
// NamespacedMutatingPolicy: they stay in its own, which is empty for others.
func Options(namespace string) []cel.EnvOption {
	options := []cel.EnvOption{
		// What Kyverno takes from CEL's own extensions beside Kubernetes' choice of them.
		ext.Bindings(), ext.Encoders(), ext.Lists(), ext.Math(), ext.Protos(), ext.Regex(), ext.Sets(), ext.Strings(),
		resource.Lib(resource.Context{}, namespace, resource.Latest()),
		globalcontext.Lib(globalcontext.Context{}, globalcontext.Latest()),
		image.Lib(image.Latest()),
		hash.Lib(hash.Latest()),
		math.Lib(math.Latest()),
		json.Lib(codec{}, json.Latest()),
		yaml.Lib(codec{}, yaml.Latest()),
		x509.Lib(x509.Latest()),
		transform.Lib(transform.Latest()),
		user.Lib(user.Latest()),
	}
	for _, declare := range []func() []cel.EnvOption{clockOptions, diceOptions, gzipOptions, httpOptions, imageDataOptions, exceptionOptions} {
		options = append(options, declare()...)
	}
	return options
}

// Expression is what a compiled expression tells of itself.
type Expression interface {
	// Uses reports whether it names a variable.
	Uses(name string) bool
}

// Impure says why an expression may give something else in another run; empty
// where nothing is known against it.
func Impure(x Expression) string {
	switch {
	case x.Uses(diceName):
		return "it draws random values"
	case x.Uses(clockName):
		return "it reads the clock"
	}
	return ""
}

// Needs reports whether an expression names anything that Session.Bindings gives a
// value to.
func Needs(x Expression) bool {
	for _, name := range []string{resourceName, globalContextName, httpName, imageName, clockName, diceName, exceptionsName} {
		if x.Uses(name) {
			return true
		}
	}
	return false
}
