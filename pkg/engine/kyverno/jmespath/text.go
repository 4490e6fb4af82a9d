package jmespath

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/randomtext"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Kyverno's functions on texts.

func compare(_ *env, args []any) (any, error) {
	return int64(strings.Compare(args[0].(string), args[1].(string))), nil
}

func equalFold(_ *env, args []any) (any, error) {
	return strings.EqualFold(args[0].(string), args[1].(string)), nil
}

func replace(e *env, args []any) (any, error) {
	n, _ := Number(args[3])
	times := -1
	if n >= 0 && n < maxText {
		times = int(n)
	}
	return replaceN(e, args, times)
}

func replaceAll(e *env, args []any) (any, error) { return replaceN(e, args, -1) }

func replaceN(e *env, args []any, times int) (any, error) {
	text, old, with := args[0].(string), args[1].(string), args[2].(string)
	count := strings.Count(text, old)
	if times >= 0 {
		count = min(count, times)
	}
	if err := e.spendText(len(text) + count*len(with)); err != nil {
		return nil, err
	}
	return strings.Replace(text, old, with, times), nil
}

func toUpper(e *env, args []any) (any, error) {
	return strings.ToUpper(args[0].(string)), e.spendText(len(args[0].(string)))
}

func toLower(e *env, args []any) (any, error) {
	return strings.ToLower(args[0].(string)), e.spendText(len(args[0].(string)))
}

func trim(_ *env, args []any) (any, error) {
	return strings.Trim(args[0].(string), args[1].(string)), nil
}

func trimPrefix(_ *env, args []any) (any, error) {
	return strings.TrimPrefix(args[0].(string), args[1].(string)), nil
}

func split(e *env, args []any) (any, error) {
	text, separator := args[0].(string), args[1].(string)
	if err := e.spend(strings.Count(text, separator)); err != nil {
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
	if want >= float64(utf8.RuneCountInString(text)) {
		return text, nil
	}
	return string([]rune(text)[:max(int(want), 0)]), nil
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

func base64Decode(e *env, args []any) (any, error) {
	if err := e.spendText(len(args[0].(string))); err != nil {
		return nil, err
	}
	decoded, err := base64.StdEncoding.DecodeString(args[0].(string))
	return string(decoded), err
}

func base64Encode(e *env, args []any) (any, error) {
	text := args[0].(string)
	if err := e.spendText(base64.StdEncoding.EncodedLen(len(text))); err != nil {
		return nil, err
	}
	return base64.StdEncoding.EncodeToString([]byte(text)), nil
}

func pathCanonicalize(_ *env, args []any) (any, error) {
	return path.Join(args[0].(string)), nil
}

func sha256Sum(e *env, args []any) (any, error) {
	sum := sha256.Sum256([]byte(args[0].(string)))
	return hex.EncodeToString(sum[:]), e.spendText(len(args[0].(string)))
}

func sha1Sum(e *env, args []any) (any, error) {
	sum := sha1.Sum([]byte(args[0].(string)))
	return hex.EncodeToString(sum[:]), e.spendText(len(args[0].(string)))
}

func md5Sum(e *env, args []any) (any, error) {
	sum := md5.Sum([]byte(args[0].(string)))
	return hex.EncodeToString(sum[:]), e.spendText(len(args[0].(string)))
}

// random refuses an empty pattern in Kyverno's words; it would give an empty text.
func random(e *env, args []any) (any, error) {
	if args[0] == "" {
		return nil, errors.New("no pattern provided")
	}
	text, err := e.world.Random.Text(args[0].(string))
	var limit *randomtext.LimitError
	if errors.As(err, &limit) {
		return nil, &engine.LimitError{What: limit.What, Max: limit.Max}
	}
	if err != nil {
		return nil, err
	}
	return text, e.spendText(len(text))
}

func patternMatch(e *env, args []any) (any, error) {
	text, _ := scalarText(args[1])
	if err := e.spendText(len(text) + len(args[0].(string))); err != nil {
		return nil, err
	}
	return selector.MatchWildcard(args[0].(string), text), nil
}

// compileRegex accounts for the compilation too: matching costs the length of
// the expression times that of the text.
func compileRegex(e *env, expr, text string) (*regexp.Regexp, error) {
	const most = 10_000
	if len(expr) > most {
		return nil, &engine.LimitError{What: "bytes of regular expression", Max: most}
	}
	if err := e.spend(len(expr) + len(text)*(1+len(expr)/16)); err != nil {
		return nil, err
	}
	return regexp.Compile(expr)
}

func regexMatch(e *env, args []any) (any, error) {
	text, _ := scalarText(args[1])
	re, err := compileRegex(e, args[0].(string), text)
	if err != nil {
		return nil, err
	}
	return re.MatchString(text), nil
}

func regexReplaceAll(e *env, args []any) (any, error) {
	with, _ := scalarText(args[2])
	return regexReplace(e, args, func(re *regexp.Regexp, dst []byte, text string, match []int) []byte {
		return re.ExpandString(dst, with, text, match)
	})
}

func regexReplaceAllLiteral(e *env, args []any) (any, error) {
	with, _ := scalarText(args[2])
	return regexReplace(e, args, func(_ *regexp.Regexp, dst []byte, _ string, _ []int) []byte {
		return append(dst, with...)
	})
}

// regexReplace is regexp's ReplaceAll with an eye on the size of the result.
func regexReplace(e *env, args []any,
	expand func(re *regexp.Regexp, dst []byte, text string, match []int) []byte,
) (any, error) {
	text, _ := scalarText(args[1])
	re, err := compileRegex(e, args[0].(string), text)
	if err != nil {
		return nil, err
	}
	var result []byte
	end := 0
	for _, match := range re.FindAllStringSubmatchIndex(text, -1) {
		result = expand(re, append(result, text[end:match[0]]...), text, match)
		end = match[1]
		if err := e.spendText(len(result)); err != nil {
			return nil, err
		}
	}
	return string(append(result, text[end:]...)), nil
}
