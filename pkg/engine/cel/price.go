package cel

import (
	"math/bits"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// price is what a call pays beside the memory of its result.
type price struct {
	before func(b *engine.Budget, args []ref.Val) error
	free   bool // it takes as long whatever it is given
	regex  bool // the second argument is a regular expression, which the first is matched with
	built  bool // what is paid before includes the result
}

// prices are those of the functions that are not linear(1): one that reads all that it is
// given, as long as a tree of it is, and returns something no larger. They are by the
// names of functions alone, since values decide.
//
//nolint:gochecknoglobals // an immutable table
var prices = func() map[string]price {
	free := price{free: true}
	out := map[string]price{
		operators.Add:            {before: payAdd, built: true},
		operators.Equals:         {before: payEqual},
		operators.NotEquals:      {before: payEqual},
		operators.In:             {before: payIn},
		operators.OldIn:          {before: payIn},
		"in":                     {before: payIn},
		"size":                   {},
		"cel.@mapInsert":         {before: payInsert, built: true},
		"join":                   {before: payJoin, built: true},
		"split":                  {before: paySplit, built: true},
		"replace":                {before: payReplace, built: true},
		"format":                 {before: payFormat},
		"indexOf":                {before: payIndexOf},
		"lastIndexOf":            {before: payIndexOf},
		"substring":              {before: payRunes},
		"charAt":                 {before: payRunes},
		"reverse":                {before: payReverse},
		"slice":                  {before: payShallow},
		"optional.unwrap":        {before: payShallow},
		"unwrapOpt":              {before: payShallow},
		"distinct":               {before: payPairs},
		"sets.contains":          {before: payPairs},
		"sets.equivalent":        {before: payPairs},
		"sets.intersects":        {before: payPairs},
		"sort":                   {before: paySort},
		"@sortByAssociatedKeys":  {before: paySort},
		"flatten":                {before: payCopy(1), built: true},
		"lists.range":            {before: payRange, built: true},
		"matches":                {regex: true},
		"find":                   {regex: true},
		"findAll":                {regex: true, before: payMatches, built: true},
		"regex.extract":          {regex: true},
		"regex.extractAll":       {regex: true, before: payMatches, built: true},
		"regex.replace":          {regex: true, before: payExpanded, built: true},
		"quantity":               {before: payQuantity},
		"isQuantity":             {before: payQuantity},
		"validate":               linear(100), // by a regular expression
		"json.unmarshal":         {before: payParse},
		"unmarshal":              {before: payParse},
		"parse":                  {before: payParse},
		"gzip.decompress":        linear(20),
		"gzip.compress":          {before: payCompress},
		"x509.decode":            {before: payCertificate},
		"listObjToMap":           {before: payCopy(4)},
		"transform.listObjToMap": {before: payCopy(4)},
	}
	for _, name := range []string{
		operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Negate, operators.Conditional,
		operators.NotStrictlyFalse, operators.Index, operators.OptIndex, operators.OptSelect,
		"type", "dyn", "first", "last", "optional.of", "optional.ofNonZeroValue", "hasValue", "value", "or", "orValue", "cel.@block",
	} {
		out[name] = free
	}
	for _, name := range []string{"image", "isImage", "parseImageReference"} {
		out[name] = linear(200) // by regular expressions
	}
	for _, name := range []string{"md5", "sha1", "sha256", "hash.md5", "hash.sha1", "hash.sha256"} {
		out[name] = linear(8)
	}
	for _, name := range []string{"json.encode", "marshal", "post", "Post"} {
		out[name] = price{before: payCopy(8)}
	}
	return out
}()

// linear is the price of a function that takes so many times as long as reading its
// arguments.
func linear(times int) price {
	return price{before: func(b *engine.Budget, args []ref.Val) error {
		for _, arg := range args {
			read, err := measure(b, arg)
			if err == nil {
				err = b.Spend(read.steps() * (times - 1))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

// payCopy is linear, for functions that make something else of all that they read.
func payCopy(times int) func(*engine.Budget, []ref.Val) error {
	return func(b *engine.Budget, args []ref.Val) error {
		for _, arg := range args {
			read, err := measure(b, arg)
			if err == nil {
				err = b.Spend(read.steps() * times)
			}
			if err == nil {
				err = b.Build(read.bytes + 2*bytesOfItem*read.values)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// payTexts pays for the texts among the arguments.
func payTexts(b *engine.Budget, args []ref.Val) error {
	bytes := 0
	for _, arg := range args {
		bytes += lengthOf(arg)
	}
	return b.Spend(bytes / bytesPerStep)
}

func payAdd(b *engine.Budget, args []ref.Val) error {
	if l, ok := args[1].(traits.Lister); ok {
		size := sizeOf(l)
		if _, grows := args[0].(traits.MutableLister); !grows {
			size += sizeOf(args[0])
		}
		return b.BuildList(size)
	}
	return write(b, lengthOf(args[0])+lengthOf(args[1]))
}

// payEqual pays for two containers of the same size.
func payEqual(b *engine.Budget, args []ref.Val) error {
	if size := sizeOf(args[0]); size == 0 || size != sizeOf(args[1]) {
		return nil
	}
	return payCopy(4)(b, args[:1])
}

func payIn(b *engine.Budget, args []ref.Val) error {
	if _, err := measure(b, args[0]); err != nil {
		return err
	}
	if _, isMap := args[1].(traits.Mapper); isMap {
		return nil
	}
	_, err := measure(b, args[1])
	return err
}

func payInsert(b *engine.Budget, args []ref.Val) error {
	fields := 1
	if len(args) == 2 {
		fields = sizeOf(args[1])
	}
	if _, grows := args[0].(traits.MutableMapper); !grows {
		fields += sizeOf(args[0])
	}
	return b.BuildMap(fields)
}

func payJoin(b *engine.Budget, args []ref.Val) error {
	read, err := measure(b, args[0])
	if err != nil {
		return err
	}
	separator := ""
	if len(args) > 1 {
		separator, _ = stringOf(args[1])
	}
	return write(b, 3*(read.bytes+read.values*len(separator))) // it grows as it is written
}

func paySplit(b *engine.Budget, args []ref.Val) error {
	text, _ := stringOf(args[0])
	separator, _ := stringOf(args[1])
	return b.Build(2 * bytesOfItem * (strings.Count(text, separator) + 1))
}

func payReplace(b *engine.Budget, args []ref.Val) error {
	text, _ := stringOf(args[0])
	old, _ := stringOf(args[1])
	replacement, _ := stringOf(args[2])
	times := strings.Count(text, old)
	if len(args) > 3 {
		if most, ok := args[3].(types.Int); ok && most >= 0 {
			times = int(min(types.Int(times), most))
		}
	}
	return write(b, len(text)+times*len(replacement))
}

// payFormat pays for numbers as long as the precision that the text asks for.
func payFormat(b *engine.Budget, args []ref.Val) error {
	text, _ := stringOf(args[0])
	digits, number := 0, 0
	for _, c := range []byte(text) {
		switch {
		case c < '0' || c > '9':
			number = 0
		case digits < 1<<40:
			digits, number = digits+9*number+int(c-'0'), 10*number+int(c-'0')
		}
	}
	if err := b.Build(digits + len(text)); err != nil {
		return err
	}
	return payCopy(4)(b, args)
}

// payIndexOf pays for a search that compares at every place.
func payIndexOf(b *engine.Budget, args []ref.Val) error {
	text, isText := stringOf(args[0])
	wanted, _ := stringOf(args[1])
	if !isText {
		return linear(2).before(b, args)
	}
	if err := b.Spend(len(text) / bytesPerStep * (1 + len(wanted)/2)); err != nil {
		return err
	}
	return b.Build(bytesOfRune * (len(text) + len(wanted)))
}

func payRunes(b *engine.Budget, args []ref.Val) error {
	text, _ := stringOf(args[0])
	return b.Build(bytesOfRune * len(text))
}

func payReverse(b *engine.Budget, args []ref.Val) error {
	if _, isText := stringOf(args[0]); isText {
		return payRunes(b, args)
	}
	return payShallow(b, args)
}

// payShallow pays for a function that looks at the items of a list, and not into them.
func payShallow(b *engine.Budget, args []ref.Val) error { return b.Spend(sizeOf(args[0])) }

// payPairs pays for a function that compares each item of a list with each of another, or
// of the same.
func payPairs(b *engine.Budget, args []ref.Val) error {
	first, second := args[0], args[len(args)-1]
	read, err := measure(b, first)
	if err == nil {
		err = b.Spend(read.steps() * sizeOf(second))
	}
	if err == nil {
		err = b.BuildList(read.values * sizeOf(second)) // of data that becomes values each time
	}
	if err != nil || len(args) == 1 {
		return err
	}
	if read, err = measure(b, second); err != nil {
		return err
	}
	return b.Spend(read.steps() * sizeOf(first))
}

func paySort(b *engine.Budget, args []ref.Val) error {
	read, err := measure(b, args[len(args)-1])
	if err == nil {
		err = b.Spend(8 * read.steps() * bits.Len(uint(read.values)))
	}
	if err != nil {
		return err
	}
	return b.Build(6 * bytesOfItem * sizeOf(args[0]))
}

func payRange(b *engine.Budget, args []ref.Val) error {
	size, _ := args[0].(types.Int)
	return b.BuildList(2 * int(min(max(size, 0), 1<<40)))
}

// payParse pays for a text of JSON or YAML, which stands last, and which is copied on the
// way.
func payParse(b *engine.Budget, args []ref.Val) error {
	text, _ := stringOf(args[len(args)-1])
	if err := b.Build(4 * len(text)); err != nil {
		return err
	}
	return b.Decode(text)
}

// payCompress pays for the tables of the compression as well.
func payCompress(b *engine.Budget, args []ref.Val) error {
	if err := b.Spend(20_000); err != nil {
		return err
	}
	return linear(20).before(b, args)
}

// maxCertificate bounds the text of a certificate, in bytes: its numbers are written with
// digits, which takes longer than their length.
const maxCertificate = 64 << 10

func payCertificate(b *engine.Budget, args []ref.Val) error {
	text, _ := stringOf(args[0])
	if len(text) > maxCertificate {
		return &engine.LimitError{What: "bytes of a certificate", Max: maxCertificate}
	}
	if err := b.Spend(20 * len(text)); err != nil {
		return err
	}
	return b.Build(20 * len(text))
}

// What a quantity may be. Kubernetes caps quantities at 2^63-1 and rounds them to 9
// places, but some are multiplied out first.
const (
	maxExponent = 100
	maxDigits   = 100
)

func payQuantity(b *engine.Budget, args []ref.Val) error {
	text, _ := stringOf(args[0])
	if strings.Trim(text, "+-.0123456789eEinumkKMGTP") != "" { // which is none
		return b.Spend(len(text))
	}
	if len(text) > maxDigits {
		return &engine.LimitError{What: "characters in a quantity", Max: maxDigits}
	}
	if at := strings.LastIndexAny(text, "eE"); at >= 0 {
		exponent := 0
		for _, c := range []byte(text[at+1:]) {
			if '0' <= c && c <= '9' {
				exponent = 10*min(exponent, maxExponent) + int(c-'0')
			}
		}
		if exponent > maxExponent {
			return &engine.LimitError{What: "as the exponent of a quantity", Max: maxExponent}
		}
	}
	return b.Spend(len(text))
}
