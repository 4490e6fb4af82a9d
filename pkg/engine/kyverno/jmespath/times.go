package jmespath

import (
	"fmt"
	"strconv"
	"time"
)

// Kyverno's functions on times, which are texts in RFC 3339, and durations,
// which are texts as Go writes them. The clock is that of the interpreter.

func timeNow(e *env, _ []any) (any, error) { return e.world.Now.Format(time.RFC3339), nil }

func timeNowUTC(e *env, _ []any) (any, error) { return e.world.Now.UTC().Format(time.RFC3339), nil }

// timeSince has an optional layout and an optional end, both left out as "".
func timeSince(e *env, args []any) (any, error) {
	layout := args[0].(string)
	if layout == "" {
		layout = time.RFC3339
	}
	start, err := time.Parse(layout, args[1].(string))
	if err != nil {
		return nil, err
	}
	end := e.world.Now
	if args[2] != "" {
		if end, err = time.Parse(layout, args[2].(string)); err != nil {
			return nil, err
		}
	}
	return end.Sub(start).String(), nil
}

// times parses the leading arguments that are times.
func times(args []any) ([]time.Time, error) {
	parsed := make([]time.Time, len(args))
	for i, arg := range args {
		t, err := time.Parse(time.RFC3339, arg.(string))
		if err != nil {
			return nil, err
		}
		parsed[i] = t
	}
	return parsed, nil
}

func timeAndDuration(args []any) (time.Time, time.Duration, error) {
	t, err := time.Parse(time.RFC3339, args[0].(string))
	if err != nil {
		return time.Time{}, 0, err
	}
	d, err := time.ParseDuration(args[1].(string))
	return t, d, err
}

func timeAdd(_ *env, args []any) (any, error) {
	t, d, err := timeAndDuration(args)
	if err != nil {
		return nil, err
	}
	return t.Add(d).Format(time.RFC3339), nil
}

func timeTruncate(_ *env, args []any) (any, error) {
	t, d, err := timeAndDuration(args)
	if err != nil {
		return nil, err
	}
	return t.Truncate(d).Format(time.RFC3339), nil
}

// timeParse takes a layout that is a number for seconds since 1970.
func timeParse(_ *env, args []any) (any, error) {
	layout, text := args[0].(string), args[1].(string)
	if _, err := strconv.ParseInt(layout, 10, 64); err == nil {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, err
		}
		return time.Unix(seconds, 0).UTC().Format(time.RFC3339), nil
	}
	t, err := time.Parse(layout, text)
	if err != nil {
		return nil, err
	}
	return t.Format(time.RFC3339), nil
}

func timeToCron(_ *env, args []any) (any, error) {
	at, err := times(args)
	if err != nil {
		return nil, err
	}
	t := at[0]
	return fmt.Sprintf("%d %d %d %d %d", t.Minute(), t.Hour(), t.Day(), t.Month(), t.Weekday()), nil
}

func timeUTC(_ *env, args []any) (any, error) {
	at, err := times(args)
	if err != nil {
		return nil, err
	}
	return at[0].UTC().Format(time.RFC3339), nil
}

func timeDiff(_ *env, args []any) (any, error) {
	at, err := times(args)
	if err != nil {
		return nil, err
	}
	return at[1].Sub(at[0]).String(), nil
}

func timeBefore(_ *env, args []any) (any, error) {
	at, err := times(args)
	if err != nil {
		return nil, err
	}
	return at[0].Before(at[1]), nil
}

func timeAfter(_ *env, args []any) (any, error) {
	at, err := times(args)
	if err != nil {
		return nil, err
	}
	return at[0].After(at[1]), nil
}

// timeBetween leaves out both ends.
func timeBetween(_ *env, args []any) (any, error) {
	at, err := times(args)
	if err != nil {
		return nil, err
	}
	return at[0].After(at[1]) && at[0].Before(at[2]), nil
}
