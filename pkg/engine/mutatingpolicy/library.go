package mutatingpolicy

import (
	"slices"

	celgo "github.com/google/cel-go/cel"
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

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// The variables of the libraries. Two of them belong to functions that depend on more than their arguments:
// policies cannot write their names, only this package's macros can.
const (
	resourceName      = "resource"
	globalContextName = "globalContext"
	httpName          = "http"
	imageName         = "image"
	exceptionsName    = "exceptions"
	clockName         = "@clock"
	diceName          = "@dice"
)

// LibraryOptions declares everything in MutatingPolicy expressions beyond Kubernetes' own. In namespaced
// policies the functions of resource take no namespace: they read in SessionSettings.Namespace.
func LibraryOptions(namespaced bool) []celgo.EnvOption {
	namespace := ""
	if namespaced {
		namespace = ownNamespace
	}
	options := []celgo.EnvOption{
		// Kyverno's choice of CEL's own extensions beyond Kubernetes' choice.
		ext.Bindings(), ext.Encoders(), ext.Lists(), ext.Math(), ext.Protos(), ext.Regex(),
		ext.Sets(), ext.Strings(),
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
		celgo.Variable(exceptionsName, celgo.MapType(celgo.StringType, celgo.ListType(celgo.StringType))),
	}
	for _, declare := range []func() []celgo.EnvOption{
		clockOptions, diceOptions, gzipOptions, httpOptions, imageDataOptions,
	} {
		options = append(options, declare()...)
	}
	return options
}

// Impure returns why the expressions of a policy may have other values in another run; empty if they are
// pure.
func Impure(x *cel.Scope) string {
	switch {
	case x.Uses(diceName):
		return "it draws random values"
	case x.Uses(clockName):
		return "it reads the clock"
	}
	return ""
}

// needsSession reports whether an expression uses a name from Session.Bindings.
func needsSession(x *cel.Scope) bool {
	return slices.ContainsFunc([]string{
		resourceName, globalContextName, httpName, imageName, clockName, diceName, exceptionsName,
	}, x.Uses)
}
