package jmespath

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// Kyverno's functions on times (RFC 3339 strings) and durations (Go strings). The clock is the interpreter's.

func onTimes[R any](call func(t []time.Time) R) func(*Interpreter, []any) (any, error) {
	return func(_ *Interpreter, args []any) (any, error) {
		parsed := make([]time.Time, len(args))
		for i, arg := range args {
			var err error
			if parsed[i], err = time.Parse(time.RFC3339, arg.(string)); err != nil {
				return nil, err
			}
		}
		return call(parsed), nil
	}
}

// onTimeAndDuration adapts a function that returns another time.
func onTimeAndDuration(call func(time.Time, time.Duration) time.Time) func(*Interpreter, []any) (any, error) {
	return func(_ *Interpreter, args []any) (any, error) {
		t, err := time.Parse(time.RFC3339, args[0].(string))
		if err != nil {
			return nil, err
		}
		d, err := time.ParseDuration(args[1].(string))
		return call(t, d).Format(time.RFC3339), err
	}
}

func timeNow(in *Interpreter, _ []any) (any, error) { return in.now.Format(time.RFC3339), nil }

func timeNowUTC(in *Interpreter, _ []any) (any, error) {
	return in.now.UTC().Format(time.RFC3339), nil
}

// timeSince has an optional layout and an optional end, both omitted as "".
func timeSince(in *Interpreter, args []any) (any, error) {
	layout, end := cmp.Or(args[0].(string), time.RFC3339), in.now
	start, err := time.Parse(layout, args[1].(string))
	if err == nil && args[2] != "" {
		end, err = time.Parse(layout, args[2].(string))
	}
	return end.Sub(start).String(), err
}

// timeParse reads seconds since 1970 if the layout is a number.
func timeParse(_ *Interpreter, args []any) (any, error) {
	layout, text := args[0].(string), args[1].(string)
	if _, err := strconv.ParseInt(layout, 10, 64); err == nil {
		seconds, err := strconv.ParseInt(text, 10, 64)
		return time.Unix(seconds, 0).UTC().Format(time.RFC3339), err
	}
	t, err := time.Parse(layout, text)
	return t.Format(time.RFC3339), err
}

func timeToCron(at []time.Time) string {
	t := at[0]
	return fmt.Sprintf("%d %d %d %d %d", t.Minute(), t.Hour(), t.Day(), t.Month(), t.Weekday())
}

func timeUTC(at []time.Time) string  { return at[0].UTC().Format(time.RFC3339) }
func timeDiff(at []time.Time) string { return at[1].Sub(at[0]).String() }
func timeBefore(at []time.Time) bool { return at[0].Before(at[1]) }
func timeAfter(at []time.Time) bool  { return at[0].After(at[1]) }

// timeBetween excludes both ends.
func timeBetween(at []time.Time) bool { return at[0].After(at[1]) && at[0].Before(at[2]) }
