package cel

import (
	"errors"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// UnknownUser is what expressions see as request.userInfo where the user is not known.
// Since every request has a user, has(request.userInfo.username) is true. An
// expression that reads a field fails.
type UnknownUser struct{}

var (
	_ ref.Val            = UnknownUser{}
	_ traits.Indexer     = UnknownUser{}
	_ traits.FieldTester = UnknownUser{}
)

var errUnknownUser = errors.New("the user is not known")

// ConvertToNative fails: there is nothing to convert.
func (UnknownUser) ConvertToNative(reflect.Type) (any, error) { return nil, errUnknownUser }

// ConvertToType fails: there is nothing to convert.
func (UnknownUser) ConvertToType(ref.Type) ref.Val { return types.WrapErr(errUnknownUser) }

// Equal fails: the answer is not known.
func (UnknownUser) Equal(ref.Val) ref.Val { return types.WrapErr(errUnknownUser) }

// Type returns a type that has fields.
func (UnknownUser) Type() ref.Type {
	return types.NewObjectType("kubernetes.UserInfo", traits.IndexerType|traits.FieldTesterType)
}

// Value returns the unknown user itself.
func (u UnknownUser) Value() any { return u }

// Get fails: what a field holds is not known.
func (UnknownUser) Get(field ref.Val) ref.Val {
	return types.NewErr("%v: %w", field.Value(), errUnknownUser)
}

// IsSet returns true for the name, which every user has. For other fields it fails.
func (u UnknownUser) IsSet(field ref.Val) ref.Val {
	if field.Equal(types.String("username")) == types.True {
		return types.True
	}
	return u.Get(field)
}
