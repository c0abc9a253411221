package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// since is the value of a flag that takes a duration with days and weeks: 90m, 7d, 2w,
// 1d12h. A day has 24 hours.
type since time.Duration

var spanPart = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)(w|d)`)

// String implements pflag.Value; none is empty.
func (s *since) String() string {
	const day = 24 * time.Hour
	switch d := time.Duration(*s); {
	case d == 0:
		return ""
	case d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	case d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	default:
		return d.String()
	}
}

// Type implements pflag.Value.
func (s *since) Type() string { return "duration" }

// Set implements pflag.Value.
func (s *since) Set(text string) error {
	rest, sum := strings.TrimSpace(text), time.Duration(0)
	for _, unit := range []struct {
		name string
		len  time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		m := spanPart.FindStringSubmatch(rest)
		if m == nil || m[2] != unit.name {
			continue
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil || n > 100_000 {
			return fmt.Errorf("%q is too long", text)
		}
		sum += time.Duration(n * float64(unit.len))
		rest = rest[len(m[0]):]
	}
	if rest != "" || sum == 0 {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 {
			return errors.New("want a duration such as 30m, 24h, 7d or 2w")
		}
		sum += d
	}
	*s = since(sum)
	return nil
}
