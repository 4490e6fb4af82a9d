package requester

import (
	"errors"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Unknown is what expressions see as request.userInfo where nobody is known. As in
// every request there is somebody: has(request.userInfo.username) is true, and an
// expression that reads a field fails.
type Unknown struct{}

var (
	_ ref.Val            = Unknown{}
	_ traits.Indexer     = Unknown{}
	_ traits.FieldTester = Unknown{}
)

var errUnknown = errors.New("the user is not known")

// ConvertToNative fails: there is nothing to convert.
func (Unknown) ConvertToNative(reflect.Type) (any, error) { return nil, errUnknown }

// ConvertToType fails: there is nothing to convert.
func (Unknown) ConvertToType(ref.Type) ref.Val { return types.WrapErr(errUnknown) }

// Equal fails: nobody can tell.
func (Unknown) Equal(ref.Val) ref.Val { return types.WrapErr(errUnknown) }

// Type is that of something that has fields.
func (Unknown) Type() ref.Type {
	return types.NewObjectType("kubernetes.UserInfo", traits.IndexerType|traits.FieldTesterType)
}

// Value is the user, who is not there.
func (u Unknown) Value() any { return u }

// Get fails: what a field holds is not known.
func (Unknown) Get(field ref.Val) ref.Val {
	return types.NewErr("%v: %w", field.Value(), errUnknown)
}

// IsSet tells of the name, which every user has. Of other fields nobody knows.
func (u Unknown) IsSet(field ref.Val) ref.Val {
	if field.Equal(types.String("username")) == types.True {
		return types.True
	}
	return u.Get(field)
}
