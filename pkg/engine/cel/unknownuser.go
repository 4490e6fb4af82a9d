package cel

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// UnknownUser is what expressions see as request.userInfo where the user is not known.
// Since every request has a user, has(request.userInfo.username) is true. An
// expression that reads a field fails.
type UnknownUser struct{ Why error }

var (
	_ ref.Val            = UnknownUser{}
	_ traits.Indexer     = UnknownUser{}
	_ traits.FieldTester = UnknownUser{}
)

// unknownUserError is an expression that reads a user who is not known.
type unknownUserError struct {
	field any // of the user; nil for none
	why   error
}

// Error names the field.
func (e *unknownUserError) Error() string {
	if e.field == nil {
		return "the user is not known"
	}
	return fmt.Sprintf("%v: the user is not known", e.field)
}

// ConvertToNative fails: there is nothing to convert.
func (u UnknownUser) ConvertToNative(reflect.Type) (any, error) {
	return nil, &unknownUserError{why: u.Why}
}

// ConvertToType fails: there is nothing to convert.
func (u UnknownUser) ConvertToType(ref.Type) ref.Val {
	return types.WrapErr(&unknownUserError{why: u.Why})
}

// Equal fails: the answer is not known.
func (u UnknownUser) Equal(ref.Val) ref.Val { return types.WrapErr(&unknownUserError{why: u.Why}) }

// Type returns a type that has fields.
func (UnknownUser) Type() ref.Type {
	return types.NewObjectType("kubernetes.UserInfo", traits.IndexerType|traits.FieldTesterType)
}

// Value returns the unknown user itself.
func (u UnknownUser) Value() any { return u }

// Get fails: what a field holds is not known.
func (u UnknownUser) Get(field ref.Val) ref.Val {
	return types.WrapErr(&unknownUserError{field.Value(), u.Why})
}

// IsSet returns true for the name, which every user has. For other fields it fails.
func (u UnknownUser) IsSet(field ref.Val) ref.Val {
	if field.Equal(types.String("username")) == types.True {
		return types.True
	}
	return u.Get(field)
}
