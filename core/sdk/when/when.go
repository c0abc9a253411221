// Package when reads the times that agents write: ISO 8601 in its variants, and
// numbers without a unit.
//
// A number is taken for seconds, milliseconds, microseconds or nanoseconds by
// its size: each unit has the years 2001 to 2286 and no two of them overlap.
// A decimal number of seconds is read digit by digit, because a float64 holds a
// time of today only to a quarter of a microsecond. A time without a zone is
// taken for UTC.
package when

import (
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Value reads a time from a JSON string or number; ok is false when it is
// neither or no time.
func Value(v jsonv.Value) (ns int64, p msg.Precision, ok bool) {
	switch v.Kind() {
	case jsonv.String:
		if ns, p, ok = Parse(string(v.Chars())); ok { // a copy that short is on the stack
			v.MarkRead()
		}
		return ns, p, ok
	case jsonv.Number:
		return Number(string(v.Raw()))
	}
	return 0, 0, false
}

// Parse reads ISO 8601 (T or a space between date and time, any number of
// digits of a second, Z, an offset or nothing), or a number in a string.
func Parse(s string) (ns int64, p msg.Precision, ok bool) {
	s = strings.TrimSpace(s)
	if len(s) < 19 || s[4] != '-' {
		return Number(s)
	}
	if !strings.ContainsAny(s[19:], "Zz+-") { // no zone; with one it parses at once
		s += "Z"
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		for _, layout := range [...]string{"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999Z0700"} {
			if t, err = time.Parse(layout, s); err == nil {
				break
			}
		}
	}
	if err != nil || t.Year() < 1970 || t.Year() > 2261 {
		return 0, 0, false
	}
	digits := 0
	if len(s) > 19 && (s[19] == '.' || s[19] == ',') {
		for _, c := range s[20:] {
			if c < '0' || c > '9' {
				break
			}
			digits++
		}
	}
	return t.UnixNano(), precision(digits), true
}

// Number reads a decimal number of seconds, milliseconds, microseconds or
// nanoseconds since 1970.
func Number(s string) (ns int64, p msg.Precision, ok bool) {
	whole, frac, _ := strings.Cut(s, ".")
	if len(whole) < 10 || len(whole) > 19 {
		return 0, 0, false
	}
	var n int64
	for i := range len(whole) {
		c := whole[i]
		if c < '0' || c > '9' {
			return 0, 0, false
		}
		n = n*10 + int64(c-'0')
	}
	exact := 0 // digits of the fraction up to the last that is not 0
	for i := range len(frac) {
		c := frac[i]
		if c < '0' || c > '9' {
			return 0, 0, false // an exponent: no writer of times has one
		}
		if c != '0' {
			exact = i + 1
		}
	}
	unit, digits := int64(1), 9
	switch {
	case n < 1e10:
		unit, digits = 1e9, 0
	case n < 1e13:
		unit, digits = 1e6, 3
	case n < 1e16:
		unit, digits = 1e3, 6
	case n < 0: // overflow
		return 0, 0, false
	}
	ns = n * unit
	for i := range exact {
		if unit /= 10; unit == 0 {
			break
		}
		ns += int64(frac[i]-'0') * unit
	}
	if ns < 0 {
		return 0, 0, false
	}
	if exact > 0 {
		digits += len(frac)
	}
	return ns, precision(digits), true
}

func precision(digits int) msg.Precision {
	switch {
	case digits == 0:
		return msg.Seconds
	case digits <= 3:
		return msg.Millis
	case digits <= 6:
		return msg.Micros
	}
	return msg.Nanos
}
