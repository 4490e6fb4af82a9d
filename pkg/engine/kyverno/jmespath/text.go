package jmespath

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Kyverno's functions on texts.

func compare(_ *env, args []any) (any, error) {
	return int64(strings.Compare(args[0].(string), args[1].(string))), nil
}

func equalFold(_ *env, args []any) (any, error) {
	return strings.EqualFold(args[0].(string), args[1].(string)), nil
}

func replace(_ *env, args []any) (any, error) {
	n, _ := Number(args[3])
	times := -1
	if n >= 0 && n < math.MaxInt32 {
		times = int(n)
	}
	return replaceN(args, times)
}

func replaceAll(_ *env, args []any) (any, error) { return replaceN(args, -1) }

func replaceN(args []any, times int) (any, error) {
	text, old, with := args[0].(string), args[1].(string), args[2].(string)
	count := strings.Count(text, old)
	if times >= 0 {
		count = min(count, times)
	}
	if err := limit.Size(len(text) + count*(len(with)-len(old))); err != nil {
		return nil, err
	}
	return strings.Replace(text, old, with, times), nil
}

func toUpper(_ *env, args []any) (any, error) { return strings.ToUpper(args[0].(string)), nil }
func toLower(_ *env, args []any) (any, error) { return strings.ToLower(args[0].(string)), nil }

// trim looks each character up in the cutset, where the library would search for it.
func trim(_ *env, args []any) (any, error) {
	cutset := make(map[rune]bool)
	for _, r := range args[1].(string) {
		cutset[r] = true
	}
	return strings.TrimFunc(args[0].(string), func(r rune) bool { return cutset[r] }), nil
}

func trimPrefix(_ *env, args []any) (any, error) {
	return strings.TrimPrefix(args[0].(string), args[1].(string)), nil
}

// bytesOfPiece is what a piece of a text takes in memory besides its bytes: as it is cut, and as an item of a list.
const bytesOfPiece = 32

func split(_ *env, args []any) (any, error) {
	text, separator := args[0].(string), args[1].(string)
	if err := limit.Size(bytesOfPiece * strings.Count(text, separator)); err != nil {
		return nil, err
	}
	parts := strings.Split(text, separator)
	list := make([]any, len(parts))
	for i := range parts {
		list[i] = parts[i]
	}
	return list, nil
}

// truncate counts characters; a negative length is none.
func truncate(_ *env, args []any) (any, error) {
	text := args[0].(string)
	want, _ := Number(args[1])
	for i := range text {
		if want < 1 {
			return strings.ToValidUTF8(text[:i], string(utf8.RuneError)), nil
		}
		want--
	}
	return text, nil
}

func toBoolean(_ *env, args []any) (any, error) {
	switch strings.ToLower(args[0].(string)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return nil, fmt.Errorf("lowercase argument must be 'true' or 'false' (provided: '%.200s')", args[0])
}

func base64Decode(_ *env, args []any) (any, error) {
	decoded, err := base64.StdEncoding.DecodeString(args[0].(string))
	return string(decoded), err
}

func base64Encode(_ *env, args []any) (any, error) {
	return base64.StdEncoding.EncodeToString([]byte(args[0].(string))), nil
}

func pathCanonicalize(_ *env, args []any) (any, error) {
	return path.Join(args[0].(string)), nil
}

func sha256Sum(_ *env, args []any) (any, error) {
	sum := sha256.Sum256([]byte(args[0].(string)))
	return hex.EncodeToString(sum[:]), nil
}

func sha1Sum(_ *env, args []any) (any, error) {
	sum := sha1.Sum([]byte(args[0].(string)))
	return hex.EncodeToString(sum[:]), nil
}

func md5Sum(_ *env, args []any) (any, error) {
	sum := md5.Sum([]byte(args[0].(string)))
	return hex.EncodeToString(sum[:]), nil
}

// random refuses an empty pattern in Kyverno's words; it would give an empty text.
func random(e *env, args []any) (any, error) {
	if args[0] == "" {
		return nil, errors.New("no pattern provided")
	}
	return e.world.Random.Text(args[0].(string))
}

func patternMatch(_ *env, args []any) (any, error) {
	text, _ := scalarText(args[1])
	pattern := args[0].(string)
	return selector.MatchWildcard(pattern, text), selector.CheckWildcard(pattern)
}
