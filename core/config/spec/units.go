package spec

import (
	"encoding"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Unit is a value with a unit.
type Unit interface {
	encoding.TextUnmarshaler
	// Expected describes the values of the type.
	Expected() string
}

// Duration is a length of time, written like a Go duration: "500ms", "1h30m", or
// a plain 0. It prints in the largest unit that holds it exactly ("90m"), so the
// common forms come back as they were written.
type Duration time.Duration

// Expected describes the values of the type.
func (Duration) Expected() string { return `a duration like "5s"` }

var errDuration = errors.New("expected " + Duration(0).Expected())

// UnmarshalText parses a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return errDuration
	}
	*d = Duration(v)
	return nil
}

var durationUnits = []struct {
	suffix string
	length time.Duration
}{
	{"h", time.Hour}, {"m", time.Minute}, {"s", time.Second},
	{"ms", time.Millisecond}, {"us", time.Microsecond}, {"ns", time.Nanosecond},
}

func (d Duration) String() string {
	if d == 0 {
		return "0s"
	}
	for _, u := range durationUnits {
		if v := time.Duration(d); v%u.length == 0 {
			return strconv.FormatInt(int64(v/u.length), 10) + u.suffix
		}
	}
	return "" // not reached: every duration is a number of nanoseconds
}

// MarshalText encodes String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Share is a part of a whole, from 0 to 1.
type Share float64

// Expected describes the values of the type.
func (Share) Expected() string { return `a share from 0 to 1, like "0.1"` }

// UnmarshalText parses a share.
func (s *Share) UnmarshalText(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return errors.New("expected " + Share(0).Expected())
	}
	*s = Share(f)
	return nil
}

func (s Share) String() string { return strconv.FormatFloat(float64(s), 'g', -1, 64) }

// MarshalText encodes String.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Size is a number of bytes, written with its unit: "64MiB", "10GB", "1.5GiB",
// "512B", or a plain 0. KiB, MiB, GiB and TiB are powers of 1024; KB, MB, GB and
// TB of 1000. It prints in the unit that needs the fewest.
type Size int64

// Expected describes the values of the type.
func (Size) Expected() string { return `a size like "64MiB"` }

var errSize = errors.New("expected " + Size(0).Expected())

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// UnmarshalText parses a size.
func (s *Size) UnmarshalText(text []byte) error {
	t := string(text)
	if t == "0" {
		*s = 0
		return nil
	}
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(t, u.suffix)
		if !ok {
			continue
		}
		v, ok := times(strings.TrimRight(number, " "), u.bytes)
		if !ok {
			return errSize
		}
		*s = Size(v)
		return nil
	}
	return errSize
}

// times multiplies a decimal number, exactly. It refuses a number of bytes
// that is not whole, or more than an int64 holds.
func times(number string, unit int64) (int64, bool) {
	if number == "" || len(number) > 32 || strings.Trim(number, "0123456789.") != "" {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, false
	}
	r.Mul(r, new(big.Rat).SetInt64(unit))
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

func (s Size) String() string {
	if s == 0 {
		return "0"
	}
	best, suffix := int64(s), "B"
	for _, u := range sizeUnits {
		if n := int64(s) / u.bytes; int64(s)%u.bytes == 0 && n < best {
			best, suffix = n, u.suffix
		}
	}
	return strconv.FormatInt(best, 10) + suffix
}

// MarshalText encodes String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
