package main

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// screen is standard output. Texts of agents must not drive the terminal that shows them, so it
// replaces control characters, those of C1 and their single bytes, the sequences that
// begin with them, and the characters that change the direction of a text. Only the colors that
// earshot itself uses pass.
type screen struct {
	w      io.Writer
	json   bool   // JSON keeps its values: characters are escaped instead of replaced
	bare   bool   // no colors pass
	held   []byte // the beginning of a character or a color, at the end of the last write
	buffer []byte
}

// rawOutput returns the writer behind a screen, for output of our own that drives the terminal, and for
// formats that programs read.
func rawOutput(w io.Writer) io.Writer {
	if s, ok := w.(*screen); ok {
		return s.w
	}
	return w
}

// jsonOutput is w for JSON.
func jsonOutput(w io.Writer) io.Writer { return &screen{w: rawOutput(w), json: true, bare: true} }

// bareOutput is w for text that has no colors of ours.
func bareOutput(w io.Writer) io.Writer { return &screen{w: rawOutput(w), bare: true} }

// colors are the sequences that package inspect and this one write.
var colors = [][]byte{[]byte("\x1b[0m"), []byte("\x1b[1m"), []byte("\x1b[2m"),
	[]byte("\x1b[31m"), []byte("\x1b[32m"), []byte("\x1b[33m"), []byte("\x1b[34m"), []byte("\x1b[35m"), []byte("\x1b[36m")}

// Write implements io.Writer. The last bytes of a character that p cuts wait for the next write.
func (s *screen) Write(p []byte) (int, error) {
	in := p
	if len(s.held) > 0 {
		in = append(s.held, p...)
		s.held = nil
	}
	out := s.buffer[:0]
	for len(in) > 0 {
		c := in[0]
		if ' ' <= c && c < 0x7f || c == '\n' || c == '\t' || s.json && c == '\r' {
			out, in = append(out, c), in[1:]
			continue
		}
		if c == '\x1b' && !s.bare {
			n, more := color(in)
			if more {
				s.held = bytes.Clone(in)
				break
			}
			if n > 0 {
				out, in = append(out, in[:n]...), in[n:]
				continue
			}
		}
		if c >= utf8.RuneSelf && !utf8.FullRune(in) {
			s.held = bytes.Clone(in)
			break
		}
		r, n := utf8.DecodeRune(in)
		switch {
		case !drives(r, n):
			out = append(out, in[:n]...)
		case s.json && r < utf8.RuneSelf && r != 0x7f: // not in a value: JSON has escaped it there
			out = append(out, ' ')
		case s.json:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, "·"...)
		}
		in = in[n:]
	}
	s.buffer = out[:0]
	if _, err := s.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// color returns the length of the color that b begins with, or that more bytes have to decide.
func color(b []byte) (n int, more bool) {
	for _, c := range colors {
		if bytes.HasPrefix(b, c) {
			return len(c), false
		}
		more = more || bytes.HasPrefix(c, b)
	}
	return 0, more
}

// drives reports whether a character, of n bytes, does more on a terminal than to be shown.
func drives(r rune, n int) bool {
	switch {
	case r == utf8.RuneError && n <= 1:
		return true
	case r < ' ' && r != '\n' && r != '\t', 0x7f <= r && r < 0xa0:
		return true
	}
	switch r {
	case 0x061c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069:
		return true
	}
	return false
}

// formulas writes CSV in which no field is a formula to a spreadsheet: a field that begins with =,
// +, -, @, a tab or a return gets an apostrophe before it. Numbers stay.
type formulas struct {
	w      io.Writer
	field  []byte // of the field in progress, its quotes included
	quoted bool   // inside of quotes
	buffer []byte
}

func (f *formulas) Write(p []byte) (int, error) {
	out := f.buffer[:0]
	for _, c := range p {
		if !f.quoted && (c == ',' || c == '\n' || c == ';') {
			out = append(f.end(out), c)
			continue
		}
		if c == '"' {
			f.quoted = !f.quoted // an escaped quote is two
		}
		f.field = append(f.field, c)
	}
	f.buffer = out[:0]
	if _, err := f.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes the last field, which no newline has ended.
func (f *formulas) Close() error {
	_, err := f.w.Write(f.end(nil))
	return err
}

func (f *formulas) end(out []byte) []byte {
	field := f.field
	f.field = f.field[:0]
	text := bytes.TrimPrefix(field, []byte{'"'})
	if len(text) == 0 || !bytes.ContainsRune([]byte("=+-@\t\r"), rune(text[0])) {
		return append(out, field...)
	}
	if _, err := strconv.ParseFloat(string(bytes.TrimRight(text, "\r")), 64); err == nil && len(text) == len(field) || string(field) == "\r" {
		return append(out, field...)
	}
	if len(text) < len(field) {
		out = append(out, '"')
	}
	return append(append(out, '\''), text...)
}
