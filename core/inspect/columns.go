package inspect

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// columns is how many columns of a terminal a character takes: two if it is of East Asia or an emoji, none if it is a mark on the
// one before.
func columns(r rune) int {
	switch {
	case r < 0x300: // no mark and no wide one
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf), 0x1160 <= r && r <= 0x11ff: // the latter are the middle and the end of a Korean syllable
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Visible is the number of columns of a text with colors.
func Visible(s string) int {
	n, in := 0, false
	for _, r := range s {
		switch {
		case r == '\x1b':
			in = true
		case in:
			in = r != 'm'
		default:
			n += columns(r)
		}
	}
	return n
}

// Pad fills a text up to a number of columns.
func Pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-Visible(s)))
}

// First is the beginning of a text, of at most n columns.
func First(s string, n int) string {
	for i, r := range s {
		if n -= columns(r); n < 0 {
			return s[:i]
		}
	}
	return s
}

// Last is the end of a text, of at most n columns.
func Last(s string, n int) string {
	r := []rune(s)
	at := len(r)
	for at > 0 && n >= columns(r[at-1]) {
		at--
		n -= columns(r[at])
	}
	return string(r[at:])
}

// Clip folds a text to one line of at most n columns.
func Clip(s string, n int) string {
	s = printable(strings.Join(strings.Fields(s), " "))
	if Visible(s) <= n {
		return s
	}
	return First(s, n-1) + "…"
}

// Middle folds a text to one line of at most n columns, and cuts its middle, the end being worth more: names of many parts
// differ in their last one.
func Middle(s string, n int) string {
	s = printable(strings.Join(strings.Fields(s), " "))
	if Visible(s) <= n {
		return s
	}
	return First(s, n/3) + "…" + Last(s, n-1-n/3)
}
