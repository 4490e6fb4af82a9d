package wording

import (
	"errors"
	"fmt"
	"strconv"
)

// Brief returns the text of an error without what is particular to one object, if the
// error can tell them apart, so that many objects have the same. It is "no reason
// given" for nil.
func Brief(err error) string {
	var b interface{ Brief() string }
	switch {
	case err == nil:
		return "no reason given"
	case errors.As(err, &b):
		return b.Brief()
	}
	return err.Error()
}

// Number returns a number that is not negative with commas between thousands: "10,000".
func Number(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", Number(n/1000), n%1000)
}
