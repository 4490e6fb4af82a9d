package cel

import (
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Each of these grows by a factor of two, sixty times over.
func TestFits(t *testing.T) {
	one := types.DefaultTypeAdapter.NativeToValue([]any{int64(1)})
	for name, double := range map[string]func(ref.Val) ref.Val{
		"lists joined with themselves": func(v ref.Val) ref.Val { return v.(traits.Adder).Add(v) },
		"lists of themselves":          func(v ref.Val) ref.Val { return types.NewRefValList(types.DefaultTypeAdapter, []ref.Val{v, v}) },
		"maps of themselves": func(v ref.Val) ref.Val {
			return types.NewRefValMap(types.DefaultTypeAdapter, map[ref.Val]ref.Val{types.String("a"): v, types.String("b"): v})
		},
	} {
		v := one
		if !fits(double(v)) {
			t.Errorf("%s: two do not fit", name)
		}
		for range 60 {
			v = double(v)
		}
		if fits(v) {
			t.Errorf("%s: 2^60 elements fit", name)
		}
	}
}
